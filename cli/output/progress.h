// A progress bar on standard error while a big file is read, and the place where Ctrl-C takes effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/options/context.h"

namespace spillway::cli {

class Progress {
 public:
  // Shows nothing unless standard error is a terminal and the context is not quiet.
  explicit Progress(const Context& context);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Clears the line.
  ~Progress();

  // For ReadOptions::progress: draws for files over 50 MB, false once interrupted.
  [[nodiscard]] std::function<bool(std::uint64_t, std::uint64_t)> callback(std::string what) const;

  // For counted work: draws every time it is called, false once interrupted.
  [[nodiscard]] std::function<bool(std::size_t, std::size_t)> counter(std::string what) const;

  // Replaces the line, on a terminal; false once interrupted.
  bool show(const std::string& line) const;

 private:
  bool visible_;
};

// Clears the line that is shown, if any. Whatever prints to a terminal calls this first.
void clear_progress();

}  // namespace spillway::cli
