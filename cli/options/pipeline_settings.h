// The times of `plan pipeline --set KEY=VALUE`, in whatever unit the user counts in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/pipeline/stage_times.h"
#include "planners/pipeline/optimizer_window.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway::cli {

// Ticks of one unit of the user's.
constexpr double ticks_per_unit = 1e6;

struct PipelineSettings {
  // Times of one micro-batch: one value, for a device's whole share, or one per part of the model.
  std::vector<double> tf = {1}, tb = {1}, tw = {1}, tr;  // tr: as tf if not given
  double tcomm = 0, tfb = -1, toffload = 0, treload = -1;
  double w_memory = 1, checkpoint = 0;    // shares of a chunk's activations
  double sout = 0, sin = 0, supdate = 0;  // of a device's whole share: states out, in, and the update
  double pieces = 1;                      // they move in, per chunk
  bool blocking = false;
};

// Throws InputError (place "--set") for an unknown key, with the nearest one offered, or a value that is none.
PipelineSettings parse_pipeline_settings(const std::vector<std::string>& settings);

// For a plan of p devices with v chunks each. Throws InputError when there are neither one value nor p v of a kind.
StageTimes stage_times(const PipelineSettings& settings, std::int64_t devices, std::int64_t chunks);
ActivationRules activation_rules(const PipelineSettings& settings);
// Times of one of `chunks` chunks; `moved` of them move.
OffloadedOptimizer offloaded_optimizer(const PipelineSettings& settings, std::int64_t chunks, std::int64_t moved,
                                       OptimizerPlace place);

}  // namespace spillway::cli
