// Experts over GPUs in a training set-up: which settings go together.
#pragma once

#include <optional>
#include <string_view>

#include "models/spec/training_setup.h"

namespace spillway::models {

struct SetupClash {
  std::string_view cause, remedy;
};

// Why Megatron-core does not run one micro-batch's exchange of tokens beside another's computation with these settings,
// whatever overlap_experts says; none: it does (megatron/core/transformer/transformer_config.py of core 0.20).
std::optional<SetupClash> overlap_clash(const TrainingSetup& setup);

// Throws InputError, naming the setting at fault.
void check_experts(const TrainingSetup& setup);

}  // namespace spillway::models
