// Command: list. What a scenario can name.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The context must outlive the app's parse().
void add_list_command(Command& app, Context& context);

}  // namespace spillway::cli
