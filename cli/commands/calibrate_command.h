// spillway calibrate: what this machine does, measured, as hardware profiles.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_calibrate_commands(Command& app, Context& context);

}  // namespace spillway::cli
