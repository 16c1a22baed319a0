#include "cli/options/deadline.h"

#include <chrono>

#include "cli/options/interrupt.h"

namespace spillway::cli {

Deadline::Deadline(double seconds)
    : watch_([this, seconds](const std::stop_token& over) {
        using Clock = std::chrono::steady_clock;
        const auto begin = Clock::now();
        while (!over.stop_requested() && !reached_) {
          const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
          if (is_interrupted() || (seconds > 0 && passed > seconds)) reached_ = true;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
      }) {}

}  // namespace spillway::cli
