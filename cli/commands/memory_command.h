// Commands: memory.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The context must outlive the app's parse().
void add_memory_commands(Command& app, Context& context);

}  // namespace spillway::cli
