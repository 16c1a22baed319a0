// spillway record: captures an unmodified CUDA program.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_record_commands(Command& app, Context& context);

}  // namespace spillway::cli
