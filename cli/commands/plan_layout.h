// Command: plan layout.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// Adds `layout` to the group of plans. The context must outlive the app's parse().
void add_plan_layout(Command& group, Context& context);

}  // namespace spillway::cli
