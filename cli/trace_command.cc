#include "cli/trace_command.h"

namespace spillway {

void add_trace_commands(CLI::App&, Context&) {}

}  // namespace spillway
