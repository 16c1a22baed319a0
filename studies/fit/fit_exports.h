// What a scenario comes to in the frameworks that can launch it: exported, and replayed as what is written has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_export.h"
#include "sim/replay/result.h"

namespace spillway::studies {

struct Exported {
  std::string target;  // a word of launch::export_target_words()
  launch::LaunchExport launch;
  // Without what the file can't say, as the framework has it by itself, under its own kernels. What the question itself
  // is (the sequence, dropout) is the program's to say, not the file's. None: see `refusal`.
  std::optional<Result> alone;
  std::string refusal;  // why the framework can't run that
};

// Throws InputError as export_launch() does.
Exported exported(const Scenario& scenario, std::string_view target);
// Of all targets, in the order of their words.
std::vector<Exported> exported(const Scenario& scenario);

}  // namespace spillway::studies
