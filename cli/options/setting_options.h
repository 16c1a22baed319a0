// --set, and --on in short for one of them, wherever a command takes a scenario.
#pragma once

#include <string>
#include <vector>

#include "cli/options/command_options.h"

namespace spillway::cli {

// The machine of --on goes behind the settings of --set, as hardware.profile. settings must outlive the parse.
void add_setting_options(Command& command, std::vector<std::string>& settings);

}  // namespace spillway::cli
