// The files of one launch, whatever they are written in, as settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/launch_setting.h"

namespace spillway::launch {

struct LaunchFiles {
  std::vector<std::string> paths;    // read in this order; what a later one says again wins
  std::optional<LaunchFormat> from;  // the launcher of the settings; not given: by content
  ShellValues given;                 // of shell variables
};

struct Launch {
  std::vector<LaunchSetting> settings;             // named as in launch_table.h
  LaunchFormat launcher = LaunchFormat::megatron;  // of the file
  LaunchFormat program = LaunchFormat::megatron;   // of the program that it starts
  std::string script;                              // the program's file, where a command names it
  std::vector<std::string> notes;                  // what was not read, and why
};

// Shell scripts and argument lists (the command that launches, and files that it names), JSON, YAML, TOML. The kind of
// a file and the launcher of its settings are found by content. Throws InputError (file, place) for what can't be read,
// for a script without a launch or with several, and for a file of the launch that isn't there. It throws for a flag
// that is mapped, too, if its value is a shell variable that nothing assigns.
Launch read_launch(const LaunchFiles& files);

}  // namespace spillway::launch
