// Commands: plan layout, plan order, plan pipeline, plan recompute, plan stalloc.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The context must outlive the app's parse().
void add_plan_commands(Command& app, Context& context);

}  // namespace spillway::cli
