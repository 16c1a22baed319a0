// spillway plan offload, spillway plan rok.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_plan_offload(CLI::App& group, Context& context);
void add_plan_rok(CLI::App& group, Context& context);

}  // namespace spillway::cli
