// Command: plan order.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// Adds `order` to the group of plans. The context must outlive the app's parse().
void add_plan_order(Command& group, Context& context);

}  // namespace spillway::cli
