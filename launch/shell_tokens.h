// A shell script's text in tokens: words as they are written, and what stands between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_budget.h"

namespace spillway::launch {

enum class ShellTokenKind : std::uint8_t {
  word,
  array,  // "NAME=(" or "NAME+=("; text has no bracket
  open,   // (
  close,  // )
  here,   // a here-document: its lines, behind the command's other words
  end,    // of a command: a line's end, ; or &
  clause_end,
  pipe,
  both,   // &&
  either  // ||
};

struct ShellToken {
  ShellTokenKind kind = ShellTokenKind::word;
  std::string text;  // of a word: with its quotes
  std::int64_t line = 0;
  // With a here-document: the file that the command writes, with its quotes; whether variables stand as they are.
  std::string target{};
  bool is_quoted = false;
};

// Comments and redirections are left out, here-documents are not; a line behind a backslash continues the one before.
// Throws InputError (file, line) for a quote or bracket without its end, and for more than the budget has.
std::vector<ShellToken> shell_tokens(std::string_view text, TextBudget& budget);

// Behind the bracket or quote that begins at text[at], which must be there: (, {, ", ' or `; npos: it has no end.
// Throws InputError (file, line) for what nests too deeply.
std::size_t shell_closing(std::string_view text, std::size_t at, std::int64_t line, TextBudget& budget);

// "NAME=" or "NAME+=" at a word's begin: the letters of it, 0 where there is none.
std::size_t assignment_length(std::string_view word);
bool is_shell_name(std::string_view name);

}  // namespace spillway::launch
