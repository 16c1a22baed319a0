// --set, and --on in short for one of them, wherever a command takes a scenario.
#pragma once

#include <string>
#include <vector>

#include "cli/options/command_options.h"

namespace spillway::cli {

// What --on names goes behind what --set gives, as hardware.profile. settings must outlive the parse.
void add_setting_options(Command& command, std::vector<std::string>& settings);

}  // namespace spillway::cli
