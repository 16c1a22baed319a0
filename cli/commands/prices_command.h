// Commands: prices check.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The context must outlive the app's parse().
void add_prices_commands(Command& app, Context& context);

}  // namespace spillway::cli
