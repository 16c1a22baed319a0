// spillway sweep, spillway merge
#pragma once

#include "cli/options/context.h"

namespace spillway::studies {
class SweepFarm;
}  // namespace spillway::studies

namespace spillway::cli {

class Command;

// farm: the MPI job that this process is one of, if any.
void add_sweep_commands(Command& app, Context& context, SweepFarm* farm);

}  // namespace spillway::cli
