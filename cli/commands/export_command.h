// `spillway export`: a scenario as the flags and files that a training framework is launched with.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_export_command(Command& app, Context& context);

}  // namespace spillway::cli
