#include "models/spec/parallel_layout.h"

#include <algorithm>

#include "base/input_error.h"
#include "models/spec/model_spec.h"

namespace spillway::models {

ParallelLayout::ParallelLayout(const TrainingSetup& setup, const ModelSpec& model, std::int64_t gpus_per_machine,
                               const PipelinePlan& plan, std::int64_t gpus_per_host)
    : stages_(setup.pipeline_parallel),
      split_(setup.pipeline_split),
      tensor_(setup.tensor_parallel),
      context_(setup.context_parallel),
      data_(setup.data_parallel),
      copies_(setup.shard_groups),
      expert_(setup.expert_parallel),
      expert_stride_(setup.has_whole_experts() ? 1 : tensor_),
      per_machine_(gpus_per_machine),
      per_host_(gpus_per_host > 0 ? gpus_per_host : gpus_per_machine),
      routes_(plan.routes),
      where_(static_cast<std::size_t>(plan.devices * plan.chunks_of_device())),
      ranges_(static_cast<std::size_t>(plan.positions())) {
  SPILLWAY_ASSERT(gpus_per_machine >= 1 && plan.devices == stages_);
  for (std::size_t route = 0; route < routes_.size(); ++route)
    for (std::size_t i = 0; i < routes_[route].size(); ++i) {
      const PipelinePlan::Place& place = routes_[route][i];
      where_.at(static_cast<std::size_t>(place.chunk * stages_ + place.device)) = {route, static_cast<std::int64_t>(i)};
    }
  const std::span<LayerRange> all(ranges_);
  const auto encoder = static_cast<std::size_t>(split_);
  if (split_ > 0) spread(0, model.encoder_layers, all.first(encoder));
  const std::int64_t first = split_ > 0 ? model.encoder_layers : 0;
  if (const std::vector<std::int64_t> stated = setup.stated_layers(); stated.size() == ranges_.size()) {
    for (std::size_t i = 0; i < stated.size(); ++i)
      ranges_[i] = {i == 0 ? 0 : ranges_[i - 1].first + ranges_[i - 1].count, stated[i]};
    return;
  }
  if (setup.traits().spreads_by_cost && split_ == 0) {
    spread_by_cost(model);
    return;
  }
  spread(first, model.all_layers() - first, all.subspan(encoder));
}

// nanotron's cut (src/nanotron/models/base.py): the block with which the work so far exceeds what a stage and those
// before it should have is the stage's last. The head is a block, too; here each stage has one layer at least.
void ParallelLayout::spread_by_cost(const ModelSpec& model) {
  const auto parts = static_cast<std::int64_t>(ranges_.size());
  const double layer =
      static_cast<double>(4 * model.query_width() + 3 * model.feed_forward) * static_cast<double>(model.hidden);
  const double all = layer * static_cast<double>(model.layers) +
                     static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  std::int64_t stage = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    LayerRange& range = ranges_[static_cast<std::size_t>(stage)];
    if (range.count++ == 0) range.first = i;
    const bool is_full = static_cast<double>((i + 1) * parts) * layer > static_cast<double>(stage + 1) * all;
    const bool needs_one = model.layers - i - 1 == parts - 1 - stage;
    if (stage < parts - 1 && (is_full || needs_one)) ++stage;
  }
}

void ParallelLayout::spread(std::int64_t first_layer, std::int64_t layers, std::span<LayerRange> over) {
  const auto parts = static_cast<std::int64_t>(over.size());
  const std::int64_t most = (layers + parts - 1) / parts;
  for (LayerRange& range : over) range.count = most;
  std::int64_t excess = most * parts - layers;
  for (std::int64_t i = 0; excess > 0; ++i, --excess) {
    const std::int64_t from_end = i / 2;
    --over[static_cast<std::size_t>(i % 2 == 0 ? parts - 1 - from_end : from_end)].count;
  }
  for (LayerRange& range : over) {
    range.first = first_layer;
    first_layer += range.count;
  }
}

LayerRange ParallelLayout::layers(std::int64_t stage, std::int64_t chunk) const {
  return ranges_.at(static_cast<std::size_t>(position(stage, chunk)));
}

ParallelLayout::Site ParallelLayout::beside(std::int64_t stage, std::int64_t chunk, std::int64_t step) const {
  const Where& here = at(stage, chunk);
  const auto& route = routes_[here.route];
  const std::int64_t there = here.position + step;
  if (there < 0 || there >= static_cast<std::int64_t>(route.size())) return {};
  const PipelinePlan::Place& place = route[static_cast<std::size_t>(there)];
  return {place.device, place.chunk};
}

GroupShape ParallelLayout::group(std::int64_t ranks, std::int64_t stride) const {
  const std::int64_t neighbours = std::max<std::int64_t>(1, (per_machine_ + stride - 1) / stride);
  return {ranks, std::min(ranks, neighbours), stride};
}

GroupShape ParallelLayout::stage_pair(std::int64_t one, std::int64_t other) const {
  const std::int64_t ranks_per_stage = tensor_ * context_ * data_;
  return {2, one * ranks_per_stage / per_machine_ == other * ranks_per_stage / per_machine_ ? 2 : 1};
}

}  // namespace spillway::models
