// spillway sweep, spillway merge
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

class SweepFarm;

// farm: the MPI job that this process is one of, if any.
void add_sweep_commands(CLI::App& app, Context& context, SweepFarm* farm);

}  // namespace spillway::cli
