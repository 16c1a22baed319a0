#include "cli/commands/plan_command.h"

#include "cli/commands/plan_layout.h"
#include "cli/commands/plan_offload.h"
#include "cli/commands/plan_order.h"
#include "cli/commands/plan_pipeline.h"
#include "cli/commands/plan_recompute.h"
#include "cli/commands/plan_stalloc.h"
#include "cli/options/command_options.h"

namespace spillway::cli {

void add_plan_commands(Command& app, Context& context) {
  Command* group = app.add_subcommand(
      "plan", "Plans: memory addresses, operator order, what leaves the device, how a pipeline runs");
  group->require_subcommand();
  add_plan_layout(*group, context);
  add_plan_stalloc(*group, context);
  add_plan_order(*group, context);
  add_plan_pipeline(*group, context);
  add_plan_offload(*group, context);
  add_plan_rok(*group, context);
  add_plan_recompute(*group, context);
}

}  // namespace spillway::cli
