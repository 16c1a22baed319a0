// spillway new: a commented scenario to start from.
#pragma once

#include "cli/options/command_options.h"

namespace spillway::cli {

void add_new_command(Command& app);

}  // namespace spillway::cli
