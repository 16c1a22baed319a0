#include "cli/commands/manual_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include "base/version.h"
#include "cli/options/command_options.h"
#include "cli/options/completion_script.h"
#include "cli/options/manual_page.h"
#include "cli/options/option_table.h"
#include "scenario/scenario_fields.h"

namespace spillway::cli {
namespace {

void print_whole(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

void add_manual_commands(Command& app) {
  Command* manual = app.add_subcommand("manual", "Print the manual page")->hide();
  manual->callback([&app] { print_whole(manual_page(option_table(app), scenario_rows(), program_version())); });

  const auto shell = std::make_shared<std::string>();
  Command* completion = app.add_subcommand("completion", "Print a shell's completion script")->hide();
  completion->add_option("SHELL", *shell, "bash or fish")->required()->choices({"bash", "fish"});
  completion->callback([&app, shell] {
    const std::vector<CommandEntry> table = option_table(app);
    print_whole(*shell == "bash" ? bash_completion(table) : fish_completion(table));
  });
}

}  // namespace spillway::cli
