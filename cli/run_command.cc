#include "cli/run_command.h"

namespace spillway {

void add_run_commands(CLI::App&, Context&) {}

}  // namespace spillway
