// Commands: plan layout, plan order, plan pipeline, plan recompute, plan stalloc.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

// The context must outlive the app's parse().
void add_plan_commands(CLI::App& app, Context& context);

}  // namespace spillway::cli
