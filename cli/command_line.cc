#include "cli/command_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/data_folder.h"
#include "base/files_in_use.h"
#include "base/input_error.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/nearest_name.h"
#include "base/short_text.h"
#include "base/shortened.h"
#include "base/terminal_text.h"
#include "base/version.h"
#include "cli/command_pages.h"
#include "cli/commands/calibrate_command.h"
#include "cli/commands/capacity_command.h"
#include "cli/commands/check_command.h"
#include "cli/commands/export_command.h"
#include "cli/commands/fit_command.h"
#include "cli/commands/gui_command.h"
#include "cli/commands/import_command.h"
#include "cli/commands/list_command.h"
#include "cli/commands/manual_command.h"
#include "cli/commands/memory_command.h"
#include "cli/commands/new_command.h"
#include "cli/commands/plan_command.h"
#include "cli/commands/prices_command.h"
#include "cli/commands/profile_command.h"
#include "cli/commands/record_command.h"
#include "cli/commands/report_command.h"
#include "cli/commands/run_command.h"
#include "cli/commands/schema_command.h"
#include "cli/commands/sweep_command.h"
#include "cli/commands/techniques_command.h"
#include "cli/commands/trace_command.h"
#include "cli/commands/validate_command.h"
#include "cli/options/command_options.h"
#include "cli/options/context.h"
#include "cli/options/interrupt.h"
#include "cli/options/text_page.h"
#include "cli/options/wrong_file.h"
#include "cli/output/progress.h"
#include "studies/procurement/procurement_fields.h"

namespace spillway::cli {
namespace {

bool colors_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && terminal != nullptr && std::string_view(terminal) != "dumb" &&
         isatty(STDERR_FILENO) != 0;
}

// With a newline; of people in a terminal no wider than it.
std::string for_terminal(std::string_view text, std::size_t indent) {
  const std::string shown = terminal_text(text);
  return isatty(STDERR_FILENO) != 0 ? paragraphs(shown, page_width(), indent) : shown + "\n";
}

void report_error(std::string_view text) {
  const bool color = colors_wanted();
  constexpr std::string_view head = "error:";
  clear_progress();
  std::fprintf(stderr, "%serror:%s%s", color ? "\033[1;31m" : "", color ? "\033[0m" : "",
               for_terminal(std::string(head) + " " + std::string(text), 4).substr(head.size()).c_str());
}

void report_note(const std::string& text) { std::fprintf(stderr, "note: %s\n", text.c_str()); }

std::vector<std::string> command_names(const Command& command) {
  std::vector<std::string> names;
  for (const Command* below : command.commands()) names.push_back(below->name());
  return names;
}

std::vector<std::string> option_names(const Command& command, const Command& app) {
  std::vector<std::string> names;
  for (const Command* level : {&command, &app})
    for (const Option& option : level->options())
      for (std::string& name : option.long_names()) names.push_back(std::move(name));
  return names;
}

// What was wrong with the arguments, in one line; the nearest known word for one that nobody knows.
std::string usage_message(const Command& app, const UsageError& error) {
  const std::vector<const Command*> path = app.chosen();
  const Command& command = *path.back();
  std::string name = "spillway";
  for (std::size_t level = 1; level < path.size(); ++level) name += " " + path[level]->name();
  const std::string help = "; see " + name + " --help";
  const std::vector<std::string> extras = app.unknown_words();
  if (extras.empty()) return name + ": " + error.what() + help;
  const std::string& word = extras.front();
  if (word.starts_with("--"))
    return name + ": unknown option '" + word +
           "': " + suggest(word.substr(0, word.find('=')), option_names(command, app)) + help;
  const std::vector<std::string> commands = command_names(command);
  if (!commands.empty() && !word.starts_with("-"))
    return name + ": unknown command '" + word + "': " + suggest(word, commands) + help;
  const std::string remedy = word.find('=') == std::string::npos ? "" : ": write --set before each KEY=VALUE";
  return name + ": unexpected argument '" + word + "'" + remedy + help;
}

void add_global_options(Command& app, Context& context) {
  app.set_version_flag("--version",
                       std::string("spillway ") + program_version() + " (commit " + program_commit() + ")");
  app.add_option("--format", context.format, "how results are printed: table, json, csv or markdown")
      ->choices({"table", "json", "csv", "markdown"})
      ->type_name("FORMAT");
  app.add_option("--memory-limit", memory_limit(),
                 "most memory that reading files may take; 8GiB, or 3/4 of the machine's where that is less")
      ->size_with_unit()
      ->type_name("SIZE");
  app.add_flag("-q,--quiet", context.quiet, "no warnings and no progress on standard error");
  app.add_flag(
      "--verbose", [] { set_verbose(true); },
      "say on standard error which profiles, tables, techniques and searches are taken, and why");
  app.require_subcommand();
  app.fallthrough();
}

// A program that was copied without its share/spillway, or out of its build folder, knows no model and no machine.
bool has_bundled_data() {
  const std::vector<std::string> places = data_places("hwprofiles", "hwprofiles/data");
  return std::any_of(places.begin(), places.end(),
                     [](const std::string& place) { return access(place.c_str(), R_OK) == 0; });
}

// Whoever read standard output has gone: `spillway ... | head`.
bool has_no_reader() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

// Closed standard streams get a place to go, so that no file that is opened later takes their numbers.
void open_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
}

constexpr std::string_view out_of_memory =
    "memory: there is not enough for this input\n"
    "  remedy: give the program more (ulimit -v, the container's limit), or a shorter input";

// Memory may also run out where nothing can be thrown, as in a thread that begins.
[[noreturn]] void on_terminate() {
  bool is_memory = false;
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    is_memory = true;
  } catch (...) {
  }
  if (!is_memory) std::abort();
  for (const std::string_view text : {std::string_view("error: "), out_of_memory, std::string_view("\n")})
    if (write(STDERR_FILENO, text.data(), text.size()) < 0) break;
  _exit(exit_bad_input);
}

constexpr std::string_view start_screen =
    R"(Does a training step fit, how long does it take, what limits it, and what helps?

  spillway fit meta-llama/Llama-3.1-8B --on 8xh100
      set-ups that make a model fit, the fastest first
  spillway import launch.sh --on 8xh100 --output a.scenario.json
      a framework's launch script or configuration, as a scenario
  spillway new llama-3.1-8b dgx-h100 --output a.scenario.json
      or a scenario to start from, with comments
  spillway run a.scenario.json
      one step of it: verdict, time, memory, bottleneck
  spillway explain a.scenario.json
      where its time and memory go, and what would change that

Names: spillway list. Commands: spillway --help; one: spillway COMMAND --help.
)";

struct Renamed {
  std::string_view old, now;
};
constexpr std::array<Renamed, 2> renamed_options{{{"--same-maths", "--keep-numerics"}, {"--reserve", "--keep-free"}}};

// An option's old name is taken as the new one, which standard error names; what follows "--" is another program's.
void rename_options(std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  const bool is_quiet =
      std::any_of(words.begin(), end, [](const auto& word) { return word == "-q" || word == "--quiet"; });
  for (auto word = words.begin(); word != end; ++word)
    for (const Renamed& option : renamed_options) {
      if (word->substr(0, word->find('=')) != option.old) continue;
      word->replace(0, option.old.size(), option.now);
      if (!is_quiet) report_note(std::string(option.old) + " is now " + std::string(option.now));
    }
}

// Words as the parser takes them: "help run" is "run --help".
std::vector<std::string> words_of_line(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc >= 3 && words[1] == "help") {
    words.erase(words.begin() + 1);
    words.emplace_back("--help");
  }
  rename_options(words);
  return words;
}

// Whether there are none; then an error says so.
bool tell_missing_data() {
  if (has_bundled_data()) return false;
  report_error(
      "its bundled data are not beside the program: keep bin and share together, or name the folder "
      "share/spillway in SPILLWAY_DATA");
  return true;
}

std::timespec coarse_now() {
  std::timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);  // which file systems take their times from
  return now;
}

// Names and sizes of the files that the command was asked to write, and wrote after `begin`.
void tell_written(const Command& app, const Context& context, const std::timespec& begin) {
  for (const Option& option : app.chosen().back()->options()) {
    if (!option.is_written()) continue;
    for (const std::string& word : option.words()) {
      const std::string path = option.file_of(word);
      struct stat file {};
      if (path == "-" || stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
      if (std::pair(file.st_mtim.tv_sec, file.st_mtim.tv_nsec) >= std::pair(begin.tv_sec, begin.tv_nsec))
        note(context, fmt::format("wrote {}, {}", path, short_size(Bytes(file.st_size))));
    }
  }
}

// Exit codes of what a command may throw.
int run_guarded(Command& app, int argc, const char* const* argv, Context& context) {
  const std::timespec begin = coarse_now();
  try {
    if (!app.parse(argc, argv)) return exit_done;
    tell_written(app, context, begin);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      if (has_no_reader()) return exit_no_reader;
      throw InputError("standard output", "", "could not be written", "check the space where it goes");
    }
    return is_interrupted() ? exit_interrupted : context.exit_code;
  } catch (const UsageError& error) {
    report_error(usage_message(app, error));
    return exit_bad_input;
  } catch (const Cancelled&) {
    report_error("interrupted");
    return exit_interrupted;
  } catch (const InputError& error) {
    if (error.file() == "-" && has_no_reader()) return exit_no_reader;
    const bool is_overwritten = dynamic_cast<const WouldOverwrite*>(&error) != nullptr;
    const auto wrong = is_overwritten ? std::nullopt : wrong_file(app, error);
    report_error(wrong ? wrong->what() : error.what());
    tell_missing_data();
    return exit_bad_input;
  } catch (const std::filesystem::filesystem_error& error) {
    report_error(
        InputError(error.path1().string(), "", error.code().message(), "check the path and its permissions").what());
    return exit_bad_input;
  } catch (const std::bad_alloc&) {
    report_error(out_of_memory);
    return exit_bad_input;
  } catch (const std::exception& error) {
    const bool is_refused = dynamic_cast<const std::system_error*>(&error) != nullptr ||
                            std::string_view(error.what()).starts_with("pthread_");  // oneTBB's, of a thread
    if (!is_refused && tell_missing_data()) return exit_bad_input;
    if (!is_refused) {
      report_error(std::string("internal: ") + error.what());
      return exit_internal;
    }
    report_error(InputError("", "", std::string("the system refuses: ") + error.what(),
                            "raise its limits on open files, threads and memory (ulimit -a)")
                     .what());
    return exit_bad_input;
  }
}

}  // namespace

void warn(const Context& context, std::string_view text) {
  if (context.quiet) return;
  clear_progress();
  std::fputs(for_terminal("warning: " + std::string(shortened(text)), 2).c_str(), stderr);
}

void note(const Context& context, std::string_view text) {
  if (context.quiet) return;
  clear_progress();
  std::fputs(for_terminal(text, 2).c_str(), stderr);
}

int run_command_line(int argc, const char* const* argv, SweepJob* job) {
  open_standard_streams();
  std::set_terminate(on_terminate);
  catch_interrupts();
  guard_files_in_use();
  use_installed_data();
  add_study_sections();
  const std::vector<std::string> line = words_of_line(argc, argv);
  std::vector<const char*> words;
  for (const std::string& word : line) words.push_back(word.c_str());
  if (words.size() < 2 || (words.size() == 2 && line[1] == "help")) {
    std::fwrite(start_screen.data(), 1, start_screen.size(), stdout);
    return exit_done;
  }
  Context context;
  Command app("Simulates training steps of large models on machines with too little memory.", "spillway");
  add_global_options(app, context);
  add_fit_command(app, context);
  add_run_commands(app, context);
  add_import_command(app, context);
  add_gui_command(app);
  add_capacity_command(app, context);
  add_sweep_commands(app, context, job);
  add_report_commands(app, context);
  add_new_command(app);
  add_trace_commands(app, context);
  add_record_commands(app, context);
  add_check_command(app, context);
  add_export_command(app, context);
  add_plan_commands(app, context);
  add_list_command(app, context);
  add_profile_commands(app, context);
  add_prices_commands(app, context);
  add_calibrate_commands(app, context);
  add_techniques_command(app, context);
  add_memory_commands(app, context);
  add_validate_commands(app, context);
  add_schema_command(app);
  add_manual_commands(app, context);
  for (const CommandPage& page : command_pages())
    app.set_page(std::string(page.command), page.page.empty() ? "" : "docs/" + std::string(page.page) + ".md",
                 {page.examples.begin(), page.examples.end()});
  app.group_commands({{"Start", {"fit", "run", "explain", "import", "gui"}},
                      {"Ask more", {"compare", "capacity", "sweep", "merge", "report"}},
                      {"Bring in", {"new", "trace", "record"}},
                      {"Take away", {"export", "plan"}},
                      {"Machines", {"list", "check", "profile", "prices", "calibrate"}},
                      {"For experts", {"techniques", "memory", "validate", "schema"}}});
  return run_guarded(app, static_cast<int>(words.size()), words.data(), context);
}

}  // namespace spillway::cli
