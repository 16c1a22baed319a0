// spillway record: captures an unmodified CUDA program.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

void add_record_commands(Command& app, Context& context);

}  // namespace spillway
