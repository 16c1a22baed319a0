// A launch to the scenario that replays its step, with an account of every flag.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_files.h"
#include "scenario/scenario.h"

namespace spillway::launch {

struct ImportRequest {
  LaunchFiles launch;
  std::string model;       // instead of the launch's; empty: the launch's own
  std::string machine;     // hardware.profile; empty: a default that the account names
  std::string model_file;  // what a model file beside the scenario is called; empty: "model.json"
};

struct UnderstoodFlag {
  std::string flag, value;
  std::string key, set_to;  // of the scenario; empty: read on behalf of others
  std::string file, place;
};

struct DefaultedKey {
  std::string key, value, why;
};

// Why a flag is not in the scenario. From time on there is a warning too: it changes time alone, needs less memory
// than the scenario, more, or either; unknown counts as either.
enum class IgnoreReason : std::uint8_t { no_effect, as_modelled, overridden, time, saves, adds, not_said, unknown };
// "no_effect", "as_modelled", "overridden", "time", "memory-", "memory+", "memory~", "unknown".
std::string_view to_string(IgnoreReason reason);

struct IgnoredFlag {
  std::string flag, value;
  IgnoreReason kind = IgnoreReason::unknown;
  std::string reason, file, place;
};

// A key of the first importance that neither the launch nor its framework's defaults state: the scenario leaves it out.
struct UnstatedKey {
  std::string key, why;
};

// Each setting of the launch is in understood or in ignored, once.
struct LaunchImport {
  std::string_view format;        // the program's
  std::string scenario;           // JSON text; a path in it is seen from the scenario's folder
  std::string model_file, model;  // a model that is not bundled: its file's name and text
  std::vector<UnderstoodFlag> understood;
  std::vector<DefaultedKey> defaulted;
  std::vector<IgnoredFlag> ignored;
  std::vector<UnstatedKey> unstated;               // in the scenario's import.open
  std::vector<scenario::UnsayableFlag> unsayable;  // in its import.unsayable: what changes memory or time
  std::vector<std::string> warnings;
};

// Throws InputError as read_launch() does, for a value that a flag can't have, a launch that does not say its model,
// and a set-up that spillway can't replay.
LaunchImport import_launch(const ImportRequest& request);

}  // namespace spillway::launch
