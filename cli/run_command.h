// Commands: run, compare, explain.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

// The context must outlive the app's parse().
void add_run_commands(Command& app, Context& context);

}  // namespace spillway
