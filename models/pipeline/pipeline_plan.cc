#include "models/pipeline/pipeline_plan.h"

#include <utility>

namespace spillway::models {
namespace {

PipelinePlan empty_plan(std::string name, std::int64_t devices, std::int64_t micro_batches, std::int64_t chunks) {
  PipelinePlan plan;
  plan.name = std::move(name);
  plan.devices = devices;
  plan.micro_batches = micro_batches;
  plan.chunks = chunks;
  plan.compute.resize(static_cast<std::size_t>(devices));
  plan.copies.resize(static_cast<std::size_t>(devices));
  return plan;
}

std::string pass_text(const PipelinePlan& plan, const PipelinePass& pass) {
  std::string text = std::to_string(pass.micro_batch);
  if (plan.slices > 1) text += "/" + std::to_string(pass.slice);
  if (plan.chunks_of_device() > 1) text += "." + std::to_string(pass.chunk);
  return text;
}

}  // namespace

std::string_view to_string(PipelineOpKind kind) {
  switch (kind) {
    case PipelineOpKind::forward:
      return "F";
    case PipelineOpKind::backward:
      return "BW";
    case PipelineOpKind::input_gradient:
      return "B";
    case PipelineOpKind::weight_gradient:
      return "W";
    case PipelineOpKind::recompute:
      return "R";
    case PipelineOpKind::paired:
      return "FB";
    case PipelineOpKind::offload:
      return "O";
    case PipelineOpKind::reload:
      return "L";
  }
  return "?";
}

std::size_t PipelinePlan::operations() const {
  std::size_t count = 0;
  for (const auto& lane : compute) count += lane.size();
  for (const auto& lane : copies) count += lane.size();
  return count;
}

PipelinePlan looped_plan(std::string name, std::int64_t devices, std::int64_t micro_batches, std::int64_t chunks) {
  PipelinePlan plan = empty_plan(std::move(name), devices, micro_batches, chunks);
  auto& route = plan.routes.emplace_back();
  for (std::int32_t c = 0; c < chunks; ++c)
    for (std::int32_t d = 0; d < devices; ++d) route.push_back({d, c});
  return plan;
}

PipelinePlan zigzag_plan(std::string name, std::int64_t devices, std::int64_t micro_batches, std::int64_t chunks) {
  PipelinePlan plan = looped_plan(std::move(name), devices, micro_batches, chunks);
  for (PipelinePlan::Place& place : plan.routes[0])
    if (place.chunk % 2 == 1) place.device = static_cast<std::int32_t>(devices) - 1 - place.device;
  return plan;
}

PipelinePlan bidirectional_plan(std::string name, std::int64_t devices, std::int64_t micro_batches) {
  PipelinePlan plan = looped_plan(std::move(name), devices, micro_batches, 1);
  auto& back = plan.routes.emplace_back();
  for (std::int32_t d = static_cast<std::int32_t>(devices) - 1; d >= 0; --d) back.push_back({d, 1});
  return plan;
}

std::string text_of(const PipelinePlan& plan, const PipelineOp& op) {
  if (op.kind == PipelineOpKind::paired) return "F" + pass_text(plan, op.pass) + "&B" + pass_text(plan, op.second);
  return std::string(to_string(op.kind)) + pass_text(plan, op.pass);
}

}  // namespace spillway::models
