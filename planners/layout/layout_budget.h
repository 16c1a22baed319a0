// Effort and time left to a layout search, and whether a callback or the clock stopped it.
#pragma once

#include <chrono>
#include <cstdint>

#include "planners/layout/layout_solver.h"

namespace spillway::planners {

class LayoutBudget {
 public:
  explicit LayoutBudget(const LayoutOptions& options) : options_(options), began_(std::chrono::steady_clock::now()) {}

  void spend(std::int64_t effort) { spent_ += effort; }
  [[nodiscard]] std::int64_t spent() const { return spent_; }
  [[nodiscard]] std::int64_t left() const { return spent_ < options_.effort ? options_.effort - spent_ : 0; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  // Asks the progress callback and looks at the clock if there is a limit; from the calling thread. False to end.
  bool goes_on(std::int64_t height, std::int64_t lower_bound) {
    if (options_.progress && !options_.progress(height, lower_bound)) stopped_ = true;
    if (options_.seconds > 0 &&
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count() >= options_.seconds)
      stopped_ = true;
    return !stopped_ && left() > 0;
  }

 private:
  const LayoutOptions& options_;
  std::chrono::steady_clock::time_point began_;
  std::int64_t spent_ = 0;
  bool stopped_ = false;
};

}  // namespace spillway::planners
