// The fields of a TrainingSetup with their words, ranges and meanings.
#pragma once

#include "base/field_rows.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

void describe(TrainingSetup& setup, FieldVisitor& visitor);

// In the order of the enums.
const Words& precision_words();
const Words& fp8_recipe_words();
const Words& optimizer_words();
const Words& optimizer_form_words();
const Words& trainable_words();
const Words& lora_target_words();
const Words& train_tower_words();
const Words& lora_weight_words();
const Words& base_weight_words();
const Words& recompute_words();
const Words& attention_kernel_words();
const Words& loss_words();
const Words& evaluation_keeps_words();
const Words& expert_spread_words();
const Words& framework_words();
const Words& state_device_words();
// The schedules of models/pipeline/named_schedules.h.
const Words& schedule_words();

}  // namespace spillway::models
