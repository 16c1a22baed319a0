// spillway sweep, spillway merge
#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace spillway {

void add_sweep_commands(CLI::App& app, Context& context);

}  // namespace spillway
