// Commands: memory.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

// The context must outlive the app's parse().
void add_memory_commands(Command& app, Context& context);

}  // namespace spillway
