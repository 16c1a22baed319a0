#include "cli/commands/gui_command.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_reader.h"
#include "base/input_error.h"
#include "cli/options/command_options.h"

namespace spillway::cli {
namespace {

constexpr const char* window_program = "spillway-gui";

struct GuiCall {
  std::string scenario, screenshot, view, theme, size;
  std::vector<std::string> settings;
  double scale = 0;
};

namespace fs = std::filesystem;

bool holds_line(const fs::path& file, std::string_view begins) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(begins)) return true;
  return false;
}

// Of the options that a build folder's file tells: [{"name": "gui", "value": "disabled", ...}, ...].
bool is_disabled(const fs::path& file, const std::string& name) {
  struct Option {
    std::string name, value;
  };
  std::vector<Option> options;
  std::vector<FieldProblem> problems;  // meson's, not the user's
  const auto root = nlohmann::ordered_json::parse(std::ifstream(file), nullptr, false);
  FieldReader reader(root, problems);
  fields::list(reader, {.key = ""}, options, [&](Option& option) {
    reader.others();
    fields::text(reader, {.key = "name"}, option.name);
    if (option.name == name) fields::text(reader, {.key = "value"}, option.value);
  });
  return std::any_of(options.begin(), options.end(), [](const Option& option) { return option.value == "disabled"; });
}

// In a build folder meson's own files tell why there is none.
[[noreturn]] void no_window(const fs::path& build) {
  const std::string folder = build.string(), make = "ninja -C " + folder + " gui/" + window_program;
  if (!fs::exists(build / "build.ninja"))
    throw InputError("spillway gui", "", std::string(window_program) + " is not installed beside spillway",
                     "install spillway with its window, or use spillway run, explain and compare");
  if (holds_line(build / "build.ninja", std::string("build gui/") + window_program + ":"))
    throw InputError("spillway gui", "", "the window is not built yet", make);
  if (is_disabled(build / "meson-info/intro-buildoptions.json", "gui"))
    throw InputError("spillway gui", "", "this build leaves its window out (-Dgui=disabled)",
                     "meson configure " + folder + " -Dgui=auto, then " + make);
  throw InputError("spillway gui", "", "Qt 6 was not there when this build was set up",
                   "install qt6-base-dev, then meson setup --reconfigure " + folder + ", then " + make);
}

// Beside this program where it is installed; in a build tree, in the folder of the window.
std::string find_window() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {folder / window_program, folder.parent_path() / "gui" / window_program})
    if (access(place.c_str(), X_OK) == 0) return place.string();
  no_window(folder.parent_path());
}

std::vector<std::string> arguments_of(const GuiCall& call, const std::string& program) {
  std::vector<std::string> arguments = {program};
  const auto option = [&arguments](const char* name, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  option("--screenshot", call.screenshot);
  option("--view", call.view);
  option("--theme", call.theme);
  option("--size", call.size);
  for (const std::string& setting : call.settings) option("--set", setting);
  if (call.scale > 0) option("--scale", std::to_string(call.scale));
  if (!call.scenario.empty()) {
    arguments.emplace_back("--");
    arguments.push_back(call.scenario);
  }
  return arguments;
}

void open_window(const GuiCall& call) {
  const std::string program = find_window();
  std::vector<std::string> arguments = arguments_of(call, program);
  std::vector<char*> raw;
  raw.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  execv(program.c_str(), raw.data());
  throw InputError(program, "", std::string("could not be started: ") + std::strerror(errno),
                   "build again, or check its permissions");
}

}  // namespace

void add_gui_command(Command& app) {
  const auto call = std::make_shared<GuiCall>();
  Command* gui = app.add_subcommand("gui", "The desktop window: what-ifs on scenarios and traces");
  gui->add_option("SCENARIO", call->scenario, "scenario file, trace, memory snapshot or sweep to open");
  gui->add_option("--screenshot", call->screenshot, "write a picture of a view (.png) and end; needs no display")
      ->to_write()
      ->type_name("FILE");
  gui->add_option("--view", call->view, "what --screenshot shows, or which view to open with")
      ->choices({"start", "answer", "canvas", "diagnosis", "timeline", "memory", "map", "sensitivity", "pareto",
                 "roofline", "pipeline", "compare", "treemap", "flame"})
      ->type_name("NAME");
  gui->add_option("--theme", call->theme, "light or dark; else the last one used")
      ->choices({"light", "dark"})
      ->type_name("NAME");
  gui->add_option("--size", call->size, "of the window in pixels")->type_name("WIDTHxHEIGHT");
  gui->add_option("--set", call->settings, "of a picture: change the scenario, pinned as the baseline before")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  gui->add_option("--scale", call->scale, "device pixels per pixel of the picture")->type_name("FACTOR");
  gui->callback([call] { open_window(*call); });
}

}  // namespace spillway::cli
