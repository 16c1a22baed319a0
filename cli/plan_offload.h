// spillway plan offload, spillway plan rok.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

void add_plan_offload(Command& group, Context& context);
void add_plan_rok(Command& group, Context& context);

}  // namespace spillway
