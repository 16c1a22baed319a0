// Command: plan order.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

// Adds `order` to the group of plans. The context must outlive the app's parse().
void add_plan_order(CLI::App& group, Context& context);

}  // namespace spillway::cli
