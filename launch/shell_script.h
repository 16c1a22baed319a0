// The launch of a shell script, read without running anything.
//
// Words are expanded as a shell would: quotes, continuations, variables and arrays that the script assigns, their
// defaults (${NAME:-8}), whole-number arithmetic. Branches are taken where their condition follows from what is known
// (string and number tests of [ ] and [[ ]], case). Loops, functions and other branches are passed over, and what
// they assign counts as unknown. So does what only a run gives: positional parameters, $(commands), the caller's
// environment. An unknown value is no error until somebody needs it: the word names its variable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_budget.h"

namespace spillway::launch {

struct ShellWord {
  std::string text;  // what isn't known stands as it is written
  std::int64_t line = 0;
  std::string unknown{};  // the variable that nothing gives a value; empty: all of it is known
};

struct ShellCommand {
  std::vector<ShellWord> words;
  std::int64_t line = 0;
};

struct ShellExport {
  std::string name;
  ShellWord value;
};

using ShellValues = std::map<std::string, std::string>;
// The text of a file that the script reads as a part of it (`source FILE`); nullopt: it isn't there.
using ShellSource = std::function<std::optional<std::string>(const std::string& name)>;

struct ShellScript {
  std::vector<ShellCommand> commands;  // in the order in which they would run; those that are assignments alone are not
  std::vector<ShellExport> exports;    // variables handed to the commands
  std::vector<ShellWord> job_options;  // words of #SBATCH lines
  ShellValues files;                   // that the script writes from here-documents, by the names that it gives them
  std::vector<std::string> notes;      // what was passed over, with its line
};

// `given`: values of variables, which win over the script's own assignments. Time and memory are of the letters that
// the budget has. Throws InputError (file, line) for a quote, bracket or block without its end, for what nests too
// deeply and for values that grow beyond the budget.
ShellScript read_shell(std::string_view text, const ShellValues& given, TextBudget& budget,
                       const ShellSource& source = nullptr);

}  // namespace spillway::launch
