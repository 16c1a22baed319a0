// The calls that a Python program makes, with the arguments that it writes as literals. Nothing is run.
//
// Known are texts, numbers, True, False, None, lists and dicts of them, torch's types, products of whole numbers, and
// names that are bound to such a value once. So are the defaults of an argparse parser's arguments as args.NAME.
// Whether a call is reached is not asked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_budget.h"
#include "launch/shell_script.h"

namespace spillway::launch {

struct PythonArgument {
  std::string name;   // empty: by its place; members of a dict behind a dot
  std::string value;  // lists joined by commas; what is no literal as it is written
  std::int64_t line = 0;
  bool is_known = true;
  bool is_null = false;
};

struct PythonCall {
  std::string name;  // with its dots
  std::int64_t line = 0;
  std::vector<PythonArgument> arguments;
};

// In the order of their names in the text. `given`: values of expressions, by their text. Throws InputError (file,
// line) for a quote or bracket without its end, what nests too deeply, and more than the budget has.
std::vector<PythonCall> python_calls(std::string_view text, const ShellValues& given, TextBudget& budget);

}  // namespace spillway::launch
