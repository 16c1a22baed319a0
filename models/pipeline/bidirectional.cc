// Pipelines in two directions, and DualPipe's halves of it.
#include <algorithm>
#include <utility>
#include <vector>

#include "models/pipeline/list_order.h"
#include "models/pipeline/plan_lane.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {
namespace {

// One device's passes in the order of DualPipe's published code. The device has two phases, each a chunk with its own
// run of micro-batches: phase 0 is the one it comes to first.
class DualDevice {
 public:
  struct Phase {
    std::int64_t chunk = 0, next_forward = 0, next_backward = 0, step = 1;
  };

  DualDevice(Phase first, Phase second, bool pairs, PlanLane lane)
      : phases_{first, second}, pairs_(pairs), lane_(lane) {}

  // `outer`: devices farther out than this one, 0 for the first; `inner`: those farther in. `each`: micro-batches of
  // each phase.
  void write(std::int64_t outer, std::int64_t inner, std::int64_t each) {
    for (std::int64_t i = 0; i < 2 * inner; ++i) forward(0);
    for (std::int64_t i = 0; i <= outer; ++i) {
      forward(0);
      forward(1);
    }
    for (std::int64_t i = 0; i < inner; ++i) {
      backward(1, true);
      weights();
      forward(1);
    }
    for (std::int64_t i = 0; i < each - 2 * (inner + outer + 1) + outer + 1; ++i) {
      pair(0, 1, pairs_ && !(i == 0 && inner == 0));
      pair(1, 0, pairs_);
    }
    for (std::int64_t i = 0; i < inner; ++i) {
      backward(1, false);
      pair(1, 0, pairs_);
    }
    wind_down(outer, inner);
  }

 private:
  // The second half of the last backwards is split, so that their W fill what would be idle.
  void wind_down(std::int64_t outer, std::int64_t inner) {
    bool is_split = false;
    for (std::int64_t i = 0; i <= outer; ++i) {
      const bool is_middle = i == (outer + 1) / 2;
      if (is_middle && outer % 2 == 1) is_split = true;
      backward(1, is_split);
      if (is_middle && outer % 2 == 0) is_split = true;
      backward(0, is_split);
    }
    for (std::int64_t i = 0; i < inner; ++i) {
      weights();
      backward(0, true);
    }
    while (first_pending_ < pending_.size()) weights();
  }

  PipelinePass take(std::int64_t phase, std::int64_t Phase::*next) {
    Phase& p = phases_[phase];
    const PipelinePass pass = pass_of(p.*next, p.chunk);
    p.*next += p.step;
    return pass;
  }
  void forward(std::int64_t phase) { lane_.forward(take(phase, &Phase::next_forward)); }
  void backward(std::int64_t phase, bool is_split) {
    const PipelinePass pass = take(phase, &Phase::next_backward);
    if (pairs_ && !is_split) return lane_.backward(pass);
    lane_.input_gradient(pass);
    if (is_split)
      pending_.push_back(pass);
    else
      lane_.weight_gradient(pass);
  }
  void weights() { lane_.weight_gradient(pending_[first_pending_++]); }
  void pair(std::int64_t forward_phase, std::int64_t backward_phase, bool is_pair) {
    if (is_pair) {
      const PipelinePass pass = take(forward_phase, &Phase::next_forward);
      return lane_.pair(pass, take(backward_phase, &Phase::next_backward));
    }
    forward(forward_phase);
    backward(backward_phase, false);
  }

  Phase phases_[2];
  bool pairs_;
  PlanLane lane_;
  std::vector<PipelinePass> pending_;
  std::size_t first_pending_ = 0;
};

}  // namespace

// Micro-batch j enters at the first device if even, at the last if odd.
PipelinePlan build_dual_pipe(const PipelineRequest& request) {
  const std::int64_t p = request.devices, m = request.micro_batches;
  PipelinePlan plan = bidirectional_plan({}, p, m);
  for (std::int64_t j = 0; j < m; ++j) plan.route_of.push_back(static_cast<std::uint8_t>(j % 2));
  for (std::int64_t d = 0; d < p; ++d) {
    const std::int64_t outer = std::min(d, p - 1 - d), inner = p / 2 - 1 - outer, near = d < p / 2 ? 0 : 1;
    DualDevice device({near, near, near, 2}, {1 - near, 1 - near, 1 - near, 2}, request.pairs,
                      PlanLane(plan.compute[static_cast<std::size_t>(d)]));
    device.write(outer, inner, m / 2);
  }
  return plan;
}

PipelinePlan build_dual_pipe_v(const PipelineRequest& request) {
  const std::int64_t p = request.devices, m = request.micro_batches;
  PipelinePlan plan = zigzag_plan({}, p, m, 2);
  for (std::int64_t d = 0; d < p; ++d) {
    DualDevice device({0, 0, 0, 1}, {1, 0, 0, 1}, request.pairs, PlanLane(plan.compute[static_cast<std::size_t>(d)]));
    device.write(d, p - 1 - d, m);
  }
  return plan;
}

// Units of p micro-batches, half in each direction, 1F1B each, forwards as long as backwards as in the paper's
// timetable; the next unit's first forwards fill what would be idle at the end of the one before.
PipelinePlan build_chimera(const PipelineRequest& request) {
  const std::int64_t p = request.devices, m = request.micro_batches;
  PipelinePlan plan = bidirectional_plan({}, p, m);
  for (std::int64_t j = 0; j < m; ++j) {
    const std::int64_t size = std::min(p, m - j / p * p);
    plan.route_of.push_back(j % p < size / 2 ? 0 : 1);
  }
  ListRules rules;
  rules.times.positions = {{.forward = 2, .input_gradient = 1, .weight_gradient = 1}};
  rules.held = p;
  rules.unit = p;
  write_list_order(plan, rules);
  return plan;
}

}  // namespace spillway::models
