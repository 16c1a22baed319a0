// Shorthand for builders: appends passes to one lane of a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

constexpr PipelinePass pass_of(std::int64_t micro_batch, std::int64_t chunk = 0, std::int64_t slice = 0) {
  return {static_cast<std::int32_t>(micro_batch), static_cast<std::int16_t>(chunk), static_cast<std::int16_t>(slice)};
}

class PlanLane {
 public:
  explicit PlanLane(std::vector<PipelineOp>& lane) : lane_(lane) {}

  void add(PipelineOpKind kind, PipelinePass pass) { lane_.push_back({.pass = pass, .kind = kind}); }
  void forward(PipelinePass pass) { add(PipelineOpKind::forward, pass); }
  void backward(PipelinePass pass) { add(PipelineOpKind::backward, pass); }
  void input_gradient(PipelinePass pass) { add(PipelineOpKind::input_gradient, pass); }
  void weight_gradient(PipelinePass pass) { add(PipelineOpKind::weight_gradient, pass); }
  void pair(PipelinePass pass, PipelinePass second) {
    lane_.push_back({.pass = pass, .second = second, .kind = PipelineOpKind::paired});
  }

 private:
  std::vector<PipelineOp>& lane_;
};

}  // namespace spillway::models
