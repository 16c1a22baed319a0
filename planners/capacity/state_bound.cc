#include "planners/capacity/state_bound.h"

namespace spillway {

Bytes least_state_bytes(const ModelSpec& model, const TrainingSetup& setup) {
  const ParameterCounts counts = parameter_counts(model);
  const auto experts = static_cast<double>(counts.experts), all = static_cast<double>(counts.total());
  const auto split = static_cast<double>(setup.tensor_parallel * setup.pipeline_parallel);
  const auto replicas = static_cast<double>(setup.data_parallel * setup.context_parallel);
  const auto spread = static_cast<double>(setup.expert_parallel);
  const auto weight = static_cast<double>(setup.weight_bytes());
  const double state = static_cast<double>(setup.model_state_bytes_per_parameter() - setup.gradient_bytes()) - weight;
  // Experts are spread over e of the replicas, and shared out over the rest.
  const auto per_gpu = [&](double elements, double holders) {
    const double weights = weight / (setup.zero_stage >= 3 ? holders : 1);
    const double states = state / (setup.zero_stage >= 1 ? holders : 1);
    return elements / split * (weights + states);
  };
  const double bytes = per_gpu(all - experts, replicas) + per_gpu(experts / spread, replicas / spread);
  return Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace spillway
