#include "cli/commands/calibrate_command.h"

#include <CLI/CLI.hpp>

#include "cli/commands/calibrate_gpu.h"
#include "cli/commands/calibrate_nvme.h"
#include "cli/commands/calibrate_pcie.h"

namespace spillway::cli {

void add_calibrate_commands(CLI::App& app, Context& context) {
  CLI::App* group = app.add_subcommand("calibrate", "Measure this machine and write hardware profiles");
  group->require_subcommand(1);
  add_calibrate_gpu(*group, context);
  add_calibrate_nvme(*group, context);
  add_calibrate_pcie(*group, context);
}

}  // namespace spillway::cli
