// spillway plan offload, spillway plan rok.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_plan_offload(Command& group, Context& context);
void add_plan_rok(Command& group, Context& context);

}  // namespace spillway::cli
