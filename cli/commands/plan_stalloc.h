// `spillway plan stalloc`: STAlloc's planners on a capture, and what the plan saves.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_plan_stalloc(Command& group, Context& context);

}  // namespace spillway::cli
