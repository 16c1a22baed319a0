// The command line as a whole: global options, the list of commands, errors to exit codes.
#pragma once

namespace spillway {

// Parses, runs one command, reports errors on standard error. Never throws. Returns the exit code (cli/context.h).
int run_command_line(int argc, const char* const* argv);

}  // namespace spillway
