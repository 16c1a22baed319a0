// The command line as data: what the parser knows, for the manual page and the shells' completions.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

class Command;

struct OptionEntry {
  std::vector<std::string> names;    // "-q", "--quiet"; one without dashes for an argument ("FILE")
  std::string value;                 // placeholder of its value; empty for flags and arguments
  std::vector<std::string> choices;  // the values there are, where they are few and known
  std::string about;
  bool required = false;
  bool is_written = false;  // it names a file that is written
};

struct CommandEntry {
  std::string path;  // "trace convert"; empty for the program itself
  std::string about;
  std::string page;                   // of docs/, where it has one
  std::vector<std::string> examples;  // command lines
  std::vector<OptionEntry> arguments, options;
  std::vector<std::string> commands;  // names of the commands below it
};

// The program first, then every command in the order of --help, each before those below it. Hidden ones (empty group)
// are left out. Choices are read from the name of an option's type: "torch|ideal" or "WORD:{a,b}"; an option that takes
// KEY=VALUE has what --set can begin with ("model.sequence=").
std::vector<CommandEntry> option_table(const Command& app);

}  // namespace spillway::cli
