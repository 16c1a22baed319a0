// The command of a shell script that launches the training, cut into the launcher's flags and the program's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/launch_setting.h"
#include "launch/shell_script.h"

namespace spillway::launch {

struct LaunchCommand {
  std::vector<LaunchSetting> launcher;  // of the formats launcher and accelerate
  std::vector<LaunchSetting> program;   // format not yet known; names as shown, without dashes
  std::vector<ShellWord> others;        // the program's words that are neither flags nor their values
  std::int64_t line = 0;
  std::string start;                   // the words of what starts it, between blanks
  std::optional<LaunchFormat> format;  // once it is known
  std::string script;                  // the program's file or module; empty: the words have none
  std::string program_file;            // the Python file that has the settings; empty: the words have them
};

// Unwraps eval, nohup, bash -c and the like. Words that a shell variable without a value stands for are an InputError
// (file, line), since flags could hide in them; but "$@", the caller's own, is a note.
LaunchCommand launch_command(const ShellCommand& command, std::vector<std::string>& notes, TextBudget& budget);

// Flags of words and the values behind them, as an argument parser takes them: "--name value", "--name=value",
// "section.name=value". Other words are added to `others`.
std::vector<LaunchSetting> flags_of(const std::vector<ShellWord>& words, const std::string& file,
                                    std::vector<ShellWord>& others);

}  // namespace spillway::launch
