// spillway sweep, spillway merge
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

class SweepFarm;

// farm: the MPI job that this process is one of, if any.
void add_sweep_commands(Command& app, Context& context, SweepFarm* farm);

}  // namespace spillway::cli
