// Shared by every command: the global options, and the exit code it leaves.
//
//   0  done                       2  bad usage or bad input (InputError)     4  done, the answer isn't known
//   1  done, the answer is no     3  internal error                        130  interrupted
//
// Results go to standard output, everything else to standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/floors.h"

namespace spillway::cli {

enum ExitCode : int {
  exit_done = 0,
  exit_answer_is_no = 1,
  exit_bad_input = 2,
  exit_internal = 3,
  exit_not_known = 4,
  exit_interrupted = 130,
  exit_no_reader = 141  // as a shell tells of a program that a closed pipe ended
};

struct Context {
  int exit_code = exit_done;
  std::string format = "table";  // "table", "json", "csv" or "markdown"
  bool quiet = false;            // no warnings, notes or progress; errors stay

  [[nodiscard]] bool json() const { return format == "json"; }
  [[nodiscard]] bool csv() const { return format == "csv"; }
  [[nodiscard]] bool markdown() const { return format == "markdown"; }
  [[nodiscard]] bool rows_only() const { return csv() || markdown(); }  // one table and no text around it
};

// "warning: ..." on standard error, unless quiet.
void warn(const Context& context, std::string_view text);
// A plain line on standard error, unless quiet.
void note(const Context& context, std::string_view text);

}  // namespace spillway::cli
