#include "cli/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/nearest_name.h"
#include "cli/commands/calibrate_command.h"
#include "cli/commands/capacity_command.h"
#include "cli/commands/gui_command.h"
#include "cli/commands/manual_command.h"
#include "cli/commands/memory_command.h"
#include "cli/commands/plan_command.h"
#include "cli/commands/profile_command.h"
#include "cli/commands/record_command.h"
#include "cli/commands/report_command.h"
#include "cli/commands/run_command.h"
#include "cli/commands/sweep_command.h"
#include "cli/commands/trace_command.h"
#include "cli/commands/validate_command.h"
#include "cli/options/context.h"
#include "cli/options/installed_data.h"
#include "cli/options/interrupt.h"

namespace spillway::cli {
namespace {

bool colors_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(STDERR_FILENO) != 0;
}

void report_error(std::string_view text) {
  const bool color = colors_wanted();
  std::fprintf(stderr, "%serror:%s %.*s\n", color ? "\033[1;31m" : "", color ? "\033[0m" : "",
               static_cast<int>(text.size()), text.data());
}

CLI::App& deepest_command(CLI::App& app) {
  CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::vector<std::string> command_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(child->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* level : {&command, &app})
    for (const CLI::Option* option : level->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// What was wrong with the arguments, in one line; the nearest known word for one that nobody knows.
std::string usage_message(CLI::App& app, const CLI::ParseError& error) {
  CLI::App& command = deepest_command(app);
  const std::string name = &command == &app ? "spillway"
                           : command.get_parent() == &app
                               ? "spillway " + command.get_name()
                               : "spillway " + command.get_parent()->get_name() + " " + command.get_name();
  const std::string help = "; see " + name + " --help";
  const std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return name + ": " + error.what() + help;
  const std::string& word = extras.front();
  if (word.starts_with("--"))
    return name + ": unknown option '" + word +
           "': " + suggest(word.substr(0, word.find('=')), option_names(app, command)) + help;
  const std::vector<std::string> commands = command_names(command);
  if (!commands.empty() && !word.starts_with("-"))
    return name + ": unknown command '" + word + "': " + suggest(word, commands) + help;
  return name + ": unexpected argument '" + word + "'" + help;
}

void add_global_options(CLI::App& app, Context& context) {
  app.set_version_flag("--version", "spillway " SPILLWAY_VERSION);
  app.add_option("--format", context.format, "how results are printed: table, json, csv or markdown")
      ->check(CLI::IsMember({"table", "json", "csv", "markdown"}))
      ->type_name("FORMAT");
  app.add_flag("-q,--quiet", context.quiet, "no warnings and no progress on standard error");
  app.require_subcommand(1);
  app.fallthrough();
}

// Exit codes of what a command may throw.
int run_guarded(CLI::App& app, int argc, const char* const* argv, Context& context) {
  try {
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw InputError("standard output", "", "could not be written", "check the space where it goes");
    return is_interrupted() ? exit_interrupted : context.exit_code;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    report_error(usage_message(app, error));
    return exit_bad_input;
  } catch (const Cancelled&) {
    report_error("interrupted");
    return exit_interrupted;
  } catch (const InputError& error) {
    report_error(error.what());
    return exit_bad_input;
  } catch (const std::exception& error) {
    report_error(std::string("internal: ") + error.what());
    return exit_internal;
  }
}

}  // namespace

void warn(const Context& context, std::string_view text) {
  if (!context.quiet) std::fprintf(stderr, "warning: %.*s\n", static_cast<int>(text.size()), text.data());
}

void note(const Context& context, std::string_view text) {
  if (!context.quiet) std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

int run_command_line(int argc, const char* const* argv, SweepFarm* farm) {
  catch_interrupts();
  use_installed_data();
  Context context;
  CLI::App app("Simulates training steps of large models on machines with too little memory.", "spillway");
  add_global_options(app, context);
  add_run_commands(app, context);
  add_trace_commands(app, context);
  add_memory_commands(app, context);
  add_plan_commands(app, context);
  add_capacity_command(app, context);
  add_report_commands(app, context);
  add_sweep_commands(app, context, farm);
  add_profile_commands(app, context);
  add_calibrate_commands(app, context);
  add_record_commands(app, context);
  add_validate_commands(app, context);
  add_gui_command(app);
  add_manual_commands(app);
  return run_guarded(app, argc, argv, context);
}

}  // namespace spillway::cli
