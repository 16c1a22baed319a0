#include "cli/options/setting_options.h"

#include <string_view>

namespace spillway::cli {
namespace {

// A setting's value is JSON where it can be: "4090" is a name, 4090 would be a number.
std::string machine_setting(std::string_view machine) {
  const bool is_number = machine.find_first_not_of("0123456789") == std::string_view::npos;
  const std::string quote = is_number ? "\"" : "";
  return "hardware.profile=" + quote + std::string(machine) + quote;
}

}  // namespace

void add_setting_options(Command& command, std::vector<std::string>& settings) {
  command.add_option("--set", settings, "change a value of the scenario, e.g. model.sequence=4096; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--on", [&settings](const std::string& machine) { settings.push_back(machine_setting(machine)); },
          "the machine: 16xh100, 4xrtx4090, dgx-h100x2, a profile or its file; short for --set "
          "hardware.profile=MACHINE")
      ->type_name("MACHINE");
}

}  // namespace spillway::cli
