#include "cli/commands/manual_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/options/completion_script.h"
#include "cli/options/manual_page.h"
#include "cli/options/option_table.h"

namespace spillway::cli {
namespace {

void print_whole(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace

void add_manual_commands(CLI::App& app) {
  const std::string hidden;
  CLI::App* manual = app.add_subcommand("manual", "Print the manual page")->group(hidden);
  manual->callback([&app] { print_whole(manual_page(option_table(app), SPILLWAY_VERSION)); });

  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a shell's completion script")->group(hidden);
  completion->add_option("SHELL", *shell, "bash or fish")->required()->check(CLI::IsMember({"bash", "fish"}));
  completion->callback([&app, shell] {
    const std::vector<CommandEntry> table = option_table(app);
    print_whole(*shell == "bash" ? bash_completion(table) : fish_completion(table));
  });
}

}  // namespace spillway::cli
