#include "cli/options/setting_options.h"

namespace spillway::cli {

void add_setting_options(Command& command, std::vector<std::string>& settings) {
  command.add_option("--set", settings, "change a value of the scenario, e.g. model.sequence=4096; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--on", [&settings](const std::string& machine) { settings.push_back("hardware.profile=" + machine); },
          "the machine: 16xh100, 4xrtx4090, dgx-h100x2, a profile or its file; short for --set "
          "hardware.profile=MACHINE")
      ->type_name("MACHINE");
}

}  // namespace spillway::cli
