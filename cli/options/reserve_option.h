// --keep-free: what is kept free of a GPU's memory, wherever a command replays a scenario.
#pragma once

#include <string>
#include <vector>

#include "cli/options/command_options.h"

namespace spillway::cli {

// reserve must outlive the parse.
void add_reserve_option(Command& command, std::string& reserve);
// Settings of a scenario, with the reserve where one is given. Throws InputError for what is neither size nor share.
std::vector<std::string> with_reserve(std::vector<std::string> settings, const std::string& reserve);

}  // namespace spillway::cli
