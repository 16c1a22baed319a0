#include "cli/options/interrupt.h"

#include <atomic>
#include <csignal>

namespace spillway::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int) { interrupted = true; }

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool is_interrupted() { return interrupted; }
const std::atomic<bool>& interrupt_flag() { return interrupted; }

}  // namespace spillway::cli
