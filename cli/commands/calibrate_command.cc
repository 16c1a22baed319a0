#include "cli/commands/calibrate_command.h"

#include "cli/commands/calibrate_gpu.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/commands/calibrate_pcie.h"
#include "cli/options/command_options.h"

namespace spillway::cli {

void add_calibrate_commands(Command& app, Context& context) {
  Command* group = app.add_subcommand("calibrate", "Measure this machine and write hardware profiles");
  group->require_subcommand();
  add_calibrate_gpu(*group, context);
  add_calibrate_nvme(*group, context);
  add_calibrate_pcie(*group, context);
}

}  // namespace spillway::cli
