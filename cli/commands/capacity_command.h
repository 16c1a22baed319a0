// Commands: capacity.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

// The context must outlive the app's parse().
void add_capacity_command(CLI::App& app, Context& context);

}  // namespace spillway::cli
