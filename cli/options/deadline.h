// A time after which work is to stop by itself, for StopScope; Ctrl-C sets the same flag.
#pragma once

#include <atomic>
#include <thread>

namespace spillway::cli {

class Deadline {
 public:
  // Counts from now. 0: Ctrl-C alone.
  explicit Deadline(double seconds);
  // Set within a twentieth of a second.
  [[nodiscard]] const std::atomic<bool>& flag() const { return reached_; }
  [[nodiscard]] bool is_reached() const { return reached_; }

 private:
  std::atomic<bool> reached_ = false;
  std::jthread watch_;
};

}  // namespace spillway::cli
