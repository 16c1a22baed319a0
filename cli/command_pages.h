// The page and the examples of each command, for --help, the manual and the documentation.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace spillway::cli {

struct CommandPage {
  std::string_view command;  // "plan layout"
  std::string_view page;     // below docs/, without its ending; empty: the command has none
  // Command lines. tests/cli/manual_test.py runs each one, with stand-ins for the files that it names.
  std::vector<std::string_view> examples;
  bool replays_often = false;  // a search, or a report of many replays
};

// In the order of --help.
std::span<const CommandPage> command_pages();

// The first word of a command, or of one of those below it, that replays often.
bool replays_often(std::string_view word);

}  // namespace spillway::cli
