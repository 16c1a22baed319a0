// Command: check.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The steps are PyTorch's: this program turns into Python with the package spillway.torch, which asks it for the
// prediction.
void add_check_command(Command& app, Context& context);

}  // namespace spillway::cli
