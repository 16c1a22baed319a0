// Defaults that an answer depends on: keys with their defaults' values though people often set other ones, and the peak
// with the other value. The scenario may state such a value itself: that isn't checked.
//
//   model.loss            PyTorch modules: fp32, against chunked; Megatron-core: against fused
//   model.main_gradients  Megatron-core's fp32 buffers, against bf16
//   model.expert_load     even routing, against the fullest rank's share at a cv of 0.6 (models/spec/expert_load.h)
//
// A key is left out if its bytes, estimated in closed form, are less than `least_share` of the peak. The two others
// with most bytes are replayed, each once and briefly (scenario/brief_run.h).
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario_run.h"

namespace spillway::studies {

struct DefaultStake {
  std::string key, value, other;  // "model.loss", "fp32", "chunked"
  Bytes hangs{};                  // the reserved peak less that with the other value; negative: that needs more
  Bytes peak{};                   // reserved with the other value
  double slower = 0;              // the step with the other value over this one's, less 1
  bool turns = false;             // it fits with one of the two alone
};

// Largest first. None of a capture, and where the peak is not known. `turning`: of a step that fits, those alone that
// may turn the verdict.
std::vector<DefaultStake> default_stakes(const LoadedScenario& loaded, const Result& result, bool turning = false);

// "of these 257 GiB 87.1 hang on model.loss: fp32 here, 170 GiB with chunked, which turns the verdict".
std::string stake_sentence(const DefaultStake& stake, const Result& result);

}  // namespace spillway::studies
