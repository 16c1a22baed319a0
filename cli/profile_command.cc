#include "cli/profile_command.h"

namespace spillway {

void add_profile_commands(CLI::App&, Context&) {}

}  // namespace spillway
