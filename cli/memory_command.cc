#include "cli/memory_command.h"

namespace spillway {

void add_memory_commands(CLI::App&, Context&) {}

}  // namespace spillway
