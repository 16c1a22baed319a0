#include "studies/capacity/state_bound.h"

#include <algorithm>

namespace spillway::studies {
namespace {

// Share of the optimizer's state that stays on the GPU, at least: a stage's chunks have up to ceil(L / (p v)) layers.
double states_on_gpu(const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.offloaded_states == 0) return setup.optimizer_device == StateDevice::gpu ? 1 : 0;
  const std::int64_t chunks = setup.pipeline_parallel * setup.pipeline_chunks;
  const std::int64_t moved = setup.offloaded_states * ((model.layers + chunks - 1) / chunks) * setup.pipeline_parallel;
  return std::max(0.0, 1 - static_cast<double>(moved) / static_cast<double>(model.layers));
}

}  // namespace

Bytes least_state_bytes(const ModelSpec& model, const TrainingSetup& setup) {
  const ParameterCounts counts = parameter_counts(model);
  const auto experts = static_cast<double>(counts.experts), all = static_cast<double>(counts.total());
  const auto split = static_cast<double>(setup.tensor_parallel * setup.pipeline_parallel);
  const auto replicas = static_cast<double>(setup.data_parallel * setup.context_parallel);
  const auto spread = static_cast<double>(setup.expert_parallel);
  const bool weights_stay = setup.weight_device == StateDevice::gpu;
  const auto weight = static_cast<double>(setup.weight_bytes());
  const double state =
      (static_cast<double>(setup.model_state_bytes_per_parameter() - setup.gradient_bytes()) - weight) *
      states_on_gpu(model, setup);
  // Experts are spread over e of the replicas, and shared out over the rest.
  const auto per_gpu = [&](double elements, double holders) {
    const double weights = (weights_stay ? weight : 0) / (setup.zero_stage >= 3 ? holders : 1);
    const double states = state / (setup.zero_stage >= 1 ? holders : 1);
    return elements / split * (weights + states);
  };
  const double bytes = per_gpu(all - experts, replicas) + per_gpu(experts / spread, replicas / spread);
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace spillway::studies
