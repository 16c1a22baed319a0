#include "models/spec/models_beside.h"

#include <string>
#include <utility>

#include "base/input_error.h"

namespace spillway::models {
namespace {

constexpr std::string_view trained_shape = "same";

std::optional<ModelSpec> named(const char* key, const std::string& name, const ModelSpec& trained) {
  if (name.empty()) return std::nullopt;
  if (name == trained_shape) return with_value_head(trained);
  try {
    return with_value_head(find_model(name));
  } catch (const InputError& error) {
    throw InputError("", key, error.cause(), error.remedy());
  }
}

TrainingSetup beside_setup(const TrainingSetup& setup, const std::string& name, std::int64_t batches) {
  TrainingSetup own = setup;
  own.gradient_accumulation = batches;
  own.global_batch = 0;
  own.loss = LossForm::fp32;
  own.reference = Reference::none;
  own.rollout_memory = 0;
  own.value_model.clear();
  own.reward_model.clear();
  own.value_micro_batch = 0;
  own.trainable = Trainable::full;
  own.modules_to_save = SavedModules::none;
  own.base_weights = BaseWeights::same;
  own.lora_dropout = 0;
  own.frozen_layers = own.trained_layers = 0;
  own.fp32_unpacked = own.keeps_packed_inputs = own.whole_vocabulary = own.holds_logits = false;
  if (name != trained_shape) own.stage_layers.clear();
  if (own.pipeline_plan) {  // of the trained model's micro-batches
    own.pipeline_plan.reset();
    own.pipeline_schedule = TrainingSetup().pipeline_schedule;
  }
  return own;
}

}  // namespace

ModelSpec with_value_head(ModelSpec model) {
  model.value_head = true;
  model.tied_embeddings = model.head_bias = false;
  model.logit_softcap = 0;
  model.published_parameters = 0;
  return model;
}

std::optional<ModelSpec> value_model(const ModelSpec& trained, const TrainingSetup& setup) {
  return named("value_model", setup.value_model, trained);
}

std::optional<ModelSpec> reward_model(const ModelSpec& trained, const TrainingSetup& setup) {
  return named("reward_model", setup.reward_model, trained);
}

std::int64_t value_batches(const TrainingSetup& setup) {
  return setup.value_micro_batch == 0 ? setup.gradient_accumulation
                                      : setup.micro_batch * setup.gradient_accumulation / setup.value_micro_batch;
}

TrainingSetup value_setup(const TrainingSetup& setup, std::int64_t batches) {
  TrainingSetup own = beside_setup(setup, setup.value_model, batches);
  if (setup.value_micro_batch > 0) own.micro_batch = setup.value_micro_batch;
  return own;
}

TrainingSetup reward_setup(const TrainingSetup& setup, std::int64_t batches) {
  return beside_setup(setup, setup.reward_model, batches);
}

}  // namespace spillway::models
