#include "models/parallel_layout.h"

#include <algorithm>

#include "models/model_spec.h"
#include "traces/base/input_error.h"

namespace spillway {

ParallelLayout::ParallelLayout(const TrainingSetup& setup, const ModelSpec& model, std::int64_t gpus_per_machine)
    : stages_(setup.pipeline_parallel),
      chunks_(setup.pipeline_chunks),
      split_(setup.pipeline_split),
      tensor_(setup.tensor_parallel),
      context_(setup.context_parallel),
      data_(setup.data_parallel),
      expert_(setup.expert_parallel),
      per_machine_(gpus_per_machine) {
  SPILLWAY_ASSERT(gpus_per_machine >= 1);
  ranges_.resize(static_cast<std::size_t>(stages_ * chunks_));
  const std::span<LayerRange> all(ranges_);
  const auto encoder = static_cast<std::size_t>(split_);
  if (split_ > 0) spread(0, model.encoder_layers, all.first(encoder));
  const std::int64_t first = split_ > 0 ? model.encoder_layers : 0;
  spread(first, model.all_layers() - first, all.subspan(encoder));
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
  return ranges_.at(static_cast<std::size_t>(chunk * stages_ + stage));
}

GroupShape ParallelLayout::group(std::int64_t ranks, std::int64_t stride) const {
  const std::int64_t neighbours = std::max<std::int64_t>(1, (per_machine_ + stride - 1) / stride);
  return {ranks, std::min(ranks, neighbours), stride};
}

GroupShape ParallelLayout::stage_pair(std::int64_t one, std::int64_t other) const {
  const std::int64_t ranks_per_stage = tensor_ * context_ * data_;
  return {2, one * ranks_per_stage / per_machine_ == other * ranks_per_stage / per_machine_ ? 2 : 1};
}

namespace {

// Of the k-th chunk-forward or -backward of a stage: micro-batches go in groups of p through all chunks.
PipelineSlot interleaved_slot(const TrainingSetup& setup, bool is_backward, std::int64_t k) {
  const std::int64_t p = setup.pipeline_parallel, v = setup.pipeline_chunks;
  const std::int64_t chunk = k / p % v;
  return {is_backward, is_backward ? v - 1 - chunk : chunk, k / (p * v) * p + k % p};
}

}  // namespace

std::vector<PipelineSlot> pipeline_order(const TrainingSetup& setup, std::int64_t stage) {
  const std::int64_t p = setup.pipeline_parallel, v = setup.pipeline_chunks;
  const std::int64_t total = setup.gradient_accumulation * v;
  std::int64_t warm_up = total;
  if (setup.pipeline_schedule == PipelineSchedule::one_f_one_b)
    warm_up = std::min(total, v == 1 ? p - 1 - stage : 2 * (p - 1 - stage) + (v - 1) * p);
  std::vector<PipelineSlot> order;
  order.reserve(static_cast<std::size_t>(2 * total));
  std::int64_t forwards = 0, backwards = 0;
  while (forwards < warm_up) order.push_back(interleaved_slot(setup, false, forwards++));
  while (backwards < total) {
    if (forwards < total) order.push_back(interleaved_slot(setup, false, forwards++));
    order.push_back(interleaved_slot(setup, true, backwards++));
  }
  return order;
}

}  // namespace spillway
