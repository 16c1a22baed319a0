// Command: plan recompute.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

// Adds `recompute` to the group of plans. The context must outlive the app's parse().
void add_plan_recompute(Command& group, Context& context);

}  // namespace spillway
