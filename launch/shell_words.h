// A raw word of a shell script to the words that it stands for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/shell_script.h"

namespace spillway::launch {

// A variable: one element, or an array's.
using ShellVariable = std::vector<ShellWord>;
using ShellVariables = std::map<std::string, ShellVariable, std::less<>>;

// What words are expanded with. All of these throw InputError (file, line) for more than the budget has.
struct ShellScope {
  const ShellVariables& variables;
  TextBudget& budget;
};

// None, one or several words: unquoted variables are split at blanks, "${NAME[@]}" gives an element each, "${NAME[*]}"
// all in one.
std::vector<ShellWord> expand(std::string_view raw, std::int64_t line, const ShellScope& scope);
// As one, as in an assignment or between [[ ]].
ShellWord expand_whole(std::string_view raw, std::int64_t line, const ShellScope& scope);

// Whole numbers, variables, + - * / % and brackets; nullopt: something else, or a division by 0.
std::optional<std::int64_t> shell_arithmetic(std::string_view expression, std::int64_t line, const ShellScope& scope);

}  // namespace spillway::launch
