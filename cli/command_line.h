// The command line as a whole: global options, the list of commands, errors to exit codes.
#pragma once

#include "base/floors.h"

namespace spillway::studies {
class SweepJob;
}  // namespace spillway::studies

namespace spillway::cli {

// Parses, runs one command, reports errors on standard error. Never throws. Returns the exit code
// (cli/options/context.h). `job`: the MPI job that this process is one of, if any.
int run_command_line(int argc, const char* const* argv, SweepJob* job = nullptr);

}  // namespace spillway::cli
