// `spillway techniques`: every technique by itself and composed, on one scenario.
#pragma once

#include "cli/options/command_options.h"
#include "cli/options/context.h"

namespace spillway::cli {

void add_techniques_command(Command& app, Context& context);

}  // namespace spillway::cli
