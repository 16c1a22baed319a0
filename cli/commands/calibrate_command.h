// spillway calibrate: what this machine does, measured, as hardware profiles.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_calibrate_commands(CLI::App& app, Context& context);

}  // namespace spillway::cli
