#include "cli/commands/manual_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "base/version.h"
#include "cli/options/command_options.h"
#include "cli/options/completion_script.h"
#include "cli/options/context.h"
#include "cli/options/manual_page.h"
#include "cli/options/option_table.h"
#include "cli/output/table.h"
#include "scenario/scenario_fields.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

void print_whole(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Json options_json(const std::vector<OptionEntry>& options) {
  Json list = Json::array();
  for (const OptionEntry& option : options)
    list.push_back({{"names", option.names},
                    {"value", option.value},
                    {"choices", option.choices},
                    {"about", option.about},
                    {"required", option.required},
                    {"is_written", option.is_written}});
  return list;
}

void print_commands(const std::vector<CommandEntry>& table) {
  Json document = json_document("spillway.manual");
  document["commands"] = Json::array();
  for (const CommandEntry& command : table)
    document["commands"].push_back({{"path", command.path},
                                    {"about", command.about},
                                    {"page", command.page},
                                    {"examples", command.examples},
                                    {"arguments", options_json(command.arguments)},
                                    {"options", options_json(command.options)}});
  print_json(document);
}

}  // namespace

void add_manual_commands(Command& app, const Context& context) {
  Command* manual = app.add_subcommand("manual", "Print the manual page")->hide();
  const auto named = std::make_shared<std::string>();
  manual->add_option("COMMAND", *named, "only this command; left out, all");
  manual->callback([&app, &context, named] {
    const std::vector<CommandEntry> table = option_table(app);
    if (context.json()) return print_commands(table);
    if (context.markdown()) return print_whole(manual_markdown(table));
    if (!named->empty()) {
      const std::string page = manual_page(table, *named, program_version());
      if (page.empty()) throw InputError("", "COMMAND", "no command '" + *named + "'", "spillway --help lists them");
      return print_whole(page);
    }
    print_whole(manual_page(table, scenario_rows(), program_version()));
  });

  const auto shell = std::make_shared<std::string>();
  Command* completion = app.add_subcommand("completion", "Print a shell's completion script")->hide();
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required()->choices({"bash", "zsh", "fish"});
  completion->callback([&app, shell] {
    const std::vector<CommandEntry> table = option_table(app);
    print_whole(*shell == "bash"  ? bash_completion(table)
                : *shell == "zsh" ? zsh_completion(table)
                                  : fish_completion(table));
  });
}

}  // namespace spillway::cli
