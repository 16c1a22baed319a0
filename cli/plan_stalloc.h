// `spillway plan stalloc`: STAlloc's planners on a capture, and what the plan saves.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

void add_plan_stalloc(Command& group, Context& context);

}  // namespace spillway
