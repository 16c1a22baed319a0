// Command: plan recompute.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// Adds `recompute` to the group of plans. The context must outlive the app's parse().
void add_plan_recompute(Command& group, Context& context);

}  // namespace spillway::cli
