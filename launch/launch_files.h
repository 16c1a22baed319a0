// The files of one launch, whatever they are written in, as settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/launch_setting.h"

namespace spillway::launch {

struct LaunchFiles {
  std::vector<std::string> paths;    // read in this order; what a later one says again wins
  std::optional<LaunchFormat> from;  // whose settings they are; not given: by content
  ShellValues given;                 // of shell variables
};

struct Launch {
  std::vector<LaunchSetting> settings;             // named as in launch_table.h
  LaunchFormat launcher = LaunchFormat::megatron;  // whose file it is
  LaunchFormat program = LaunchFormat::megatron;   // whose program that starts
  std::string script;                              // the program's file, where a command names it
  std::vector<std::string> notes;                  // what was not read, and why
};

// Shell scripts and argument lists (the command that launches, and files that it names), JSON, YAML, TOML; which of
// them a file is, and whose settings it has, is found by content. Throws InputError (file, place) for what can't be
// read, a script without a launch or with several, a flag that is mapped but whose value is a shell variable that
// nothing assigns, and a file of the launch that isn't there.
Launch read_launch(const LaunchFiles& files);

}  // namespace spillway::launch
