// Rules that count warm-up passes: GPipe, 1F1B and what grew from it.
#include <algorithm>
#include <vector>

#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

// Forwards and backwards of a device in the order in which it comes to them; merged by a number of forwards ahead.
struct TwoQueues {
  std::vector<PipelinePass> forwards, backwards;  // equally many

  void merge(std::int64_t ahead, PlanLane lane) const {
    const std::size_t warm_up = std::min(forwards.size(), static_cast<std::size_t>(ahead));
    for (std::size_t i = 0; i < warm_up; ++i) lane.forward(forwards[i]);
    for (std::size_t i = 0; i < backwards.size(); ++i) {
      if (warm_up + i < forwards.size()) lane.forward(forwards[warm_up + i]);
      lane.backward(backwards[i]);
    }
  }
};

}  // namespace

PipelinePlan build_gpipe(const PipelineRequest& request) {
  PipelinePlan plan = looped_plan({}, request.devices, request.micro_batches, 1);
  for (auto& ops : plan.compute) {
    PlanLane lane(ops);
    for (std::int64_t j = 0; j < request.micro_batches; ++j) lane.forward(pass_of(j));
    for (std::int64_t j = 0; j < request.micro_batches; ++j) lane.backward(pass_of(j));
  }
  return plan;
}

PipelinePlan build_one_f_one_b(const PipelineRequest& request, bool is_eager) {
  PipelinePlan plan = looped_plan({}, request.devices, request.micro_batches, 1);
  TwoQueues queues;
  for (std::int64_t j = 0; j < request.micro_batches; ++j) queues.forwards.push_back(pass_of(j));
  queues.backwards = queues.forwards;
  for (std::int64_t d = 0; d < request.devices; ++d) {
    const std::int64_t ahead = request.devices - 1 - d;
    queues.merge(is_eager ? 2 * ahead : ahead, PlanLane(plan.compute[static_cast<std::size_t>(d)]));
  }
  return plan;
}

PipelinePlan build_interleaved(const PipelineRequest& request) {
  const std::int64_t p = request.devices, v = request.chunks;
  PipelinePlan plan = looped_plan({}, p, request.micro_batches, v);
  TwoQueues queues;
  for (std::int64_t i = 0; i < request.micro_batches * v; ++i) {
    const std::int64_t chunk = i % (p * v) / p, micro_batch = i / (p * v) * p + i % p;
    queues.forwards.push_back(pass_of(micro_batch, chunk));
    queues.backwards.push_back(pass_of(micro_batch, v - 1 - chunk));
  }
  for (std::int64_t d = 0; d < p; ++d)
    queues.merge(2 * (p - 1 - d) + (v - 1) * p, PlanLane(plan.compute[static_cast<std::size_t>(d)]));
  return plan;
}

// In steady state each device holds `delay` times p - 1 passes and one more: the forwards ahead, and those whose W is
// still to come.
PipelinePlan build_delayed_weights(const PipelineRequest& request, std::int64_t delay) {
  const std::int64_t p = request.devices, m = request.micro_batches;
  PipelinePlan plan = looped_plan({}, p, m, 1);
  for (std::int64_t d = 0; d < p; ++d) {
    PlanLane lane(plan.compute[static_cast<std::size_t>(d)]);
    const std::int64_t ahead = std::min(delay * (p - 1 - d) + 1, m), lag = delay * d;
    for (std::int64_t j = 0; j < ahead; ++j) lane.forward(pass_of(j));
    for (std::int64_t j = 0; j < m; ++j) {
      lane.input_gradient(pass_of(j));
      if (j >= lag) lane.weight_gradient(pass_of(j - lag));
      if (ahead + j < m) lane.forward(pass_of(ahead + j));
    }
    for (std::int64_t j = std::max<std::int64_t>(0, m - lag); j < m; ++j) lane.weight_gradient(pass_of(j));
  }
  return plan;
}

PipelinePlan build_sliced(const PipelineRequest& request) {
  const std::int64_t p = request.devices, m = request.micro_batches, v = request.chunks, k = request.slices;
  PipelinePlan plan = looped_plan({}, p, m, v);
  plan.slices = k;
  TwoQueues queues;
  for (std::int64_t j = 0; j < m; ++j) {
    for (std::int64_t c = 0; c < v; ++c) {
      for (std::int64_t s = 0; s < k; ++s) {
        queues.forwards.push_back(pass_of(j, c, s));
        queues.backwards.push_back(pass_of(j, v - 1 - c, k - 1 - s));
      }
    }
  }
  for (std::int64_t d = 0; d < p; ++d)
    queues.merge(v * k - 1 + p - 1 - d, PlanLane(plan.compute[static_cast<std::size_t>(d)]));
  return plan;
}

}  // namespace spillway::models
