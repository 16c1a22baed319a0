// Command: validate.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

// The context must outlive the app's parse().
void add_validate_commands(Command& app, Context& context);

}  // namespace spillway
