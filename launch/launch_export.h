// A scenario to what a framework is launched with: the other way through launch_table.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "scenario/scenario.h"

namespace spillway::launch {

// megatron: a shell script; torchtitan: its TOML file; deepspeed: its JSON file; torch: a shell script of `accelerate
// launch` with TrainingArguments.
const Words& export_target_words();
// The target that writes what a launcher starts, a word of launch_format_words(); empty: none does.
std::string_view export_target_of(std::string_view launcher);

struct SaidKey {
  std::string key, value;
  std::string flag, as;  // of the framework
};
struct UnsaidKey {
  std::string key, value, reason;
  std::optional<std::string> otherwise{};  // what the framework does by itself; none: nobody knows
};

// Each key that matters is said, unsaid, or what the framework does by itself.
struct LaunchExport {
  std::string text;
  std::vector<SaidKey> said;
  std::vector<UnsaidKey> unsaid;
  // The command that it is for trains by itself: nobody's code adds what the file can't say.
  bool is_whole_program = false;
};

// `target`: a word of export_target_words(). Throws InputError for a scenario without a model, and for a set-up that
// spillway can't replay.
LaunchExport export_launch(const Scenario& scenario, std::string_view target);

}  // namespace spillway::launch
