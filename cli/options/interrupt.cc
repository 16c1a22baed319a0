#include "cli/options/interrupt.h"

#include <atomic>
#include <csignal>

#include "base/stop.h"

namespace spillway::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int) { interrupted = true; }
void on_failed_write(int) {}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  for (const int signal : {SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // A function, not SIG_IGN, which a program started by `record` would inherit.
  action.sa_handler = on_failed_write;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

bool is_interrupted() { return interrupted; }
const std::atomic<bool>& interrupt_flag() { return interrupted; }

void run_stoppable(const std::function<void()>& work) {
  const StopScope scope(&interrupted);
  work();
}

}  // namespace spillway::cli
