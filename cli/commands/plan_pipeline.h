// Command: plan pipeline.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// Adds `pipeline` to the group of plans. The context must outlive the app's parse().
void add_plan_pipeline(Command& group, Context& context);

}  // namespace spillway::cli
