// The one exception for bad input: what the user gave us can't be used.
//
// Every message names the file, the place in it, the cause and the remedy. The command line
// turns it into exit code 2. Programmer errors are SPILLWAY_ASSERTs, never this.
#pragma once

#include <stdexcept>
#include <string>

namespace spillway {

class InputError : public std::runtime_error {
 public:
  // file: as the user named it, may be empty. place: "line 12", "byte 4711", "/gpu/memory", may be empty.
  InputError(std::string file, const std::string& place, const std::string& cause, const std::string& remedy);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::string& cause() const { return cause_; }
  [[nodiscard]] const std::string& remedy() const { return remedy_; }

 private:
  std::string file_, place_, cause_, remedy_;
};

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace spillway

// Checked in every build: a broken invariant ends the program with exit code 3 (see cli/main.cc).
#define SPILLWAY_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::spillway::assertion_failed(#expression, __FILE__, __LINE__))
