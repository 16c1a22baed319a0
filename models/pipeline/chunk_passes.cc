#include "models/pipeline/chunk_passes.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/input_error.h"

namespace spillway::models {
namespace {

using Kind = PipelineOpKind;

[[noreturn]] void refuse_chunks(const std::string& cause, const std::string& remedy) {
  throw InputError("", "pipeline_schedule", cause, remedy);
}

enum Pass : std::size_t { forward, recompute, backward, weights, kinds };

// Counts the passes of one device's chunks, each kind in the order of the micro-batches.
class DeviceCount {
 public:
  DeviceCount(const PipelinePlan& plan, std::size_t device, const std::vector<std::int32_t>& turns)
      : plan_(plan), device_(device), turns_(turns), done_(static_cast<std::size_t>(plan.chunks_of_device())) {}

  void count() {
    for (const PipelineOp& op : plan_.compute[device_]) {
      switch (op.kind) {
        case Kind::forward:
          take(forward, op, op.pass);
          break;
        case Kind::recompute:
          take(recompute, op, op.pass);
          break;
        case Kind::input_gradient:
          take(backward, op, op.pass);
          break;
        case Kind::weight_gradient:
          take(weights, op, op.pass);
          break;
        case Kind::backward:
          take_whole(op, op.pass);
          break;
        case Kind::paired:
          take(forward, op, op.pass);
          take_whole(op, op.second);
          break;
        case Kind::offload:
        case Kind::reload:
          refuse_chunks(plan_.name + " moves activations, which a generated step does not",
                        "leave that to the scenario's offload settings, or use `spillway plan pipeline`");
      }
    }
  }
  void check(std::size_t chunk, std::int64_t turns) const {
    const auto& done = done_[chunk];
    const std::int64_t all = turns * plan_.slices;
    const bool whole = done[forward] == all && done[backward] == all && done[weights] == all;
    if (!whole || (done[recompute] != 0 && (done[recompute] != all || plan_.slices > 1)))
      refuse_chunks(
          "device " + std::to_string(device_) + " does not do every pass of its chunk " + std::to_string(chunk),
          "give each micro-batch F and BW, or F, B and W; and R to all of a chunk or to none");
  }

 private:
  void take(Pass kind, const PipelineOp& op, const PipelinePass& pass) {
    std::int64_t& next = done_[static_cast<std::size_t>(pass.chunk)][kind];
    const std::int64_t slice = kind == forward || kind == recompute ? pass.slice : plan_.slices - 1 - pass.slice;
    if (turns_[static_cast<std::size_t>(pass.micro_batch)] * plan_.slices + slice != next)
      refuse_chunks(
          std::string(plan_.slices > 1 ? "passes" : "micro-batches") + " overtake each other in a chunk of device " +
              std::to_string(device_) + ", at " + text_of(plan_, op),
          "let each chunk take them in the same order, the lowest number first; slices backwards the highest first");
    ++next;
  }
  void take_whole(const PipelineOp& op, const PipelinePass& pass) {
    take(backward, op, pass);
    take(weights, op, pass);
  }

  const PipelinePlan& plan_;
  std::size_t device_;
  const std::vector<std::int32_t>& turns_;
  std::vector<std::array<std::int64_t, kinds>> done_;
};

std::vector<std::int64_t> turns_of_routes(const PipelinePlan& plan) {
  std::vector<std::int64_t> counts(plan.routes.size(), 0);
  for (std::int64_t j = 0; j < plan.micro_batches; ++j) ++counts[plan.route(j)];
  return counts;
}

}  // namespace

std::vector<ChunkPasses> chunk_passes(const PipelinePlan& plan, std::int64_t device) {
  std::vector<ChunkPasses> chunks(static_cast<std::size_t>(plan.chunks_of_device()));
  const std::vector<std::int64_t> counts = turns_of_routes(plan);
  for (std::size_t route = 0; route < plan.routes.size(); ++route)
    for (const PipelinePlan::Place& place : plan.routes[route])
      if (place.device == device)
        chunks[static_cast<std::size_t>(place.chunk)] = {.turns = counts[route], .slices = plan.slices};
  for (const PipelineOp& op : plan.compute[static_cast<std::size_t>(device)]) {
    ChunkPasses& chunk = chunks[static_cast<std::size_t>(op.pass.chunk)];
    chunk.splits = chunk.splits || op.kind == Kind::weight_gradient;
    chunk.recomputes = chunk.recomputes || op.kind == Kind::recompute;
  }
  return chunks;
}

std::vector<std::int32_t> turns_of(const PipelinePlan& plan) {
  std::vector<std::int32_t> counts(plan.routes.size(), 0), turns;
  turns.reserve(static_cast<std::size_t>(plan.micro_batches));
  for (std::int64_t j = 0; j < plan.micro_batches; ++j) turns.push_back(counts[plan.route(j)]++);
  return turns;
}

void require_steps(const PipelinePlan& plan) {
  bool mirrored = plan.routes.size() <= 2;
  for (std::size_t i = 0; mirrored && plan.routes.size() == 2 && i < plan.routes[0].size(); ++i)
    mirrored = plan.routes[0][i].device + plan.routes[1][i].device + 1 == plan.devices;
  if (!mirrored) refuse_chunks("routes that don't mirror each other", "give one route, or two in opposite directions");
  const std::vector<std::int64_t> counts = turns_of_routes(plan);
  if (std::find(counts.begin(), counts.end(), 0) != counts.end())
    refuse_chunks("one of the directions has no micro-batch", "give more micro-batches");
  const std::vector<std::int32_t> turns = turns_of(plan);
  for (std::size_t d = 0; d < plan.compute.size(); ++d) {
    if (!plan.copies[d].empty())
      refuse_chunks(plan.name + " moves activations by itself, which a generated step does not",
                    "leave that to the scenario's offload settings, or use `spillway plan pipeline`");
    DeviceCount device(plan, d, turns);
    device.count();
    for (std::size_t route = 0; route < plan.routes.size(); ++route)
      for (const PipelinePlan::Place& place : plan.routes[route])
        if (static_cast<std::size_t>(place.device) == d)
          device.check(static_cast<std::size_t>(place.chunk), counts[route]);
  }
}

}  // namespace spillway::models
