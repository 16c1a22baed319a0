#include "studies/screen/state_bound.h"

#include <algorithm>

#include "models/spec/trainable.h"

namespace spillway::studies {
namespace {

// Share of the optimizer's state that stays on the GPU, at least: a stage's chunks have up to ceil(L / (p v)) layers.
double states_on_gpu(const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.offloaded_states == 0) return setup.optimizer_device == StateDevice::gpu ? 1 : 0;
  const std::int64_t chunks = setup.pipeline_parallel * setup.pipeline_chunks;
  const std::int64_t moved = setup.offloaded_states * ((model.layers + chunks - 1) / chunks) * setup.pipeline_parallel;
  return std::max(0.0, 1 - static_cast<double>(moved) / static_cast<double>(model.layers));
}

// Bytes of weights, and elements that have a state; of routed experts or of all else.
struct HeldState {
  double weights = 0, trained = 0;
};

HeldState held_state(const ModelSpec& model, const TrainingSetup& setup, bool experts) {
  HeldState held;
  for (const Parameter& parameter : parameters(model)) {
    if ((parameter.experts > 0) != experts) continue;
    const bool trains = is_trained(parameter, setup, model);
    const std::int64_t weights = is_packed(parameter, setup) ? stored_weight(setup.base_weights, parameter).bytes()
                                 : trains && setup.has_wide_shards() ? 0  // FSDP's are the fp32 ones of the state
                                                                     : parameter.elements() * setup.weight_bytes();
    held.weights += static_cast<double>(weights);
    if (setup.reference == Reference::model)
      held.weights += static_cast<double>(parameter.elements() * setup.weight_bytes());
    if (trains) held.trained += static_cast<double>(parameter.elements());
    if (!is_adapted(parameter, setup)) continue;
    const std::int64_t added =
        adapter_a(parameter, setup.lora_rank).elements() + adapter_b(parameter, setup.lora_rank).elements();
    held.weights += static_cast<double>(added * setup.trained_weight_bytes());
    held.trained += static_cast<double>(added);
  }
  return held;
}

}  // namespace

Bytes least_state_bytes(const ModelSpec& model, const TrainingSetup& setup) {
  const HeldState experts = held_state(model, setup, true), rest = held_state(model, setup, false);
  const auto split = static_cast<double>(setup.tensor_parallel * setup.pipeline_parallel);
  const auto shards = static_cast<double>(setup.shards());
  const auto spread = static_cast<double>(setup.expert_parallel);
  const bool weights_stay = setup.weight_device == StateDevice::gpu;
  const double state = static_cast<double>(setup.optimizer_bytes_per_parameter()) * states_on_gpu(model, setup);
  // Experts are spread over e of the ranks that share, and shared out over the rest.
  const auto per_gpu = [&](const HeldState& held, double holders) {
    const double weights = (weights_stay ? held.weights : 0) / (setup.zero_stage >= 3 ? holders : 1);
    const double states = held.trained * state / (setup.zero_stage >= 1 ? holders : 1);
    return (weights + states) / split;
  };
  const double bytes = per_gpu(rest, shards) + per_gpu(experts, shards / spread) / spread;
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace spillway::studies
