// spillway sweep, spillway merge
#pragma once

#include "cli/options/context.h"

namespace spillway::studies {
class SweepJob;
}  // namespace spillway::studies

namespace spillway::cli {

class Command;

// job: the MPI job that this process is one of, if any.
void add_sweep_commands(Command& app, Context& context, SweepJob* job);

}  // namespace spillway::cli
