#include "cli/options/interrupt.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/output_file.h"
#include "base/stop.h"
#include "cli/options/context.h"

namespace spillway::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

// To the thread that waits for an interrupt.
std::array<int, 2> pipe_ends = {-1, -1};

void on_interrupt(int) {
  interrupted = true;
  const int error = errno;
  if (write(pipe_ends[1], "", 1) < 0) errno = error;
}
void on_failed_write(int) {}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// How long this process's threads have stood ready without a core to run on, by the system's count; 0: not counted.
double seconds_queued() {
  double sum = 0;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) {
    double ran = 0, queued = 0;  // ns
    if (std::ifstream(task.path() / "schedstat") >> ran >> queued) sum += 1e-9 * queued;
  }
  return sum;
}

// Half a second is promised. What comes to its end by itself may say more: how to go on, the best so far. On a machine
// with more work than cores it gets some more time for the same work.
void* end_in_time(void*) {
  char byte = 0;
  while (read(pipe_ends[0], &byte, 1) != 1)
    if (errno != EINTR) return nullptr;
  constexpr double patience = 0.4, longest = 1.2;
  const double began = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_PROCESS_CPUTIME_ID),
               queued = seconds_queued();
  const auto is_over = [&] {
    const double passed = seconds_of(CLOCK_MONOTONIC) - began;
    return passed > longest || (passed > patience && (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - used > 0.9 * patience ||
                                                      seconds_queued() - queued < 0.25 * patience));
  };
  while (!is_over()) usleep(10'000);
  remove_unfinished_files();
  constexpr std::string_view said = "error: interrupted\n";
  for (std::size_t at = 0, wrote = 1; wrote > 0 && at < said.size(); at += wrote)
    wrote = static_cast<std::size_t>(std::max<ssize_t>(write(STDERR_FILENO, &said[at], said.size() - at), 0));
  _exit(exit_interrupted);
}

// Without the thread, where the system has none to give, work ends where it looks at the flag.
void start_watch() {
  if (pipe2(pipe_ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  fcntl(pipe_ends[0], F_SETFL, 0);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the others
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::size_t{256} << 10);
  pthread_t thread{};
  static_cast<void>(pthread_create(&thread, &attributes, end_in_time, nullptr));
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void catch_interrupts() {
  start_watch();
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
