// ParallelLayout: which rank does what, when a TrainingSetup spreads a step over GPUs.
//
// Ranks are numbered as Megatron-LM numbers them, the fastest index first: tensor, context, data, pipeline stage.
// So a tensor group is t neighbours, a data group d ranks t * c apart, and stages lie as far apart as they can.
// Machines hold `gpus_per_machine` neighbours each.
//
// Layers over chunks (an encoder's first, then the decoder's): chunk g of p v gets layers / (p v) of them, rounded up;
// where that is too many, chunks lose one layer each, from the last and the first inwards, since these also hold the
// head and the embedding (22 layers on 8 stages: 2, 3, 3, 3, 3, 3, 3, 2). With an encoder, so for the encoder's layers
// over the first `pipeline_split` stages, and for the decoder's over the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/training_setup.h"

namespace spillway {

struct ModelSpec;

// The ranks of one communicator, for the time of its collectives.
struct GroupShape {
  std::int64_t ranks = 1;
  std::int64_t per_machine = 1;  // of the group's ranks, in each machine it touches
  std::int64_t stride = 1;       // GPUs from one of them to the next
};

struct LayerRange {
  std::int64_t first = 0, count = 0;
  [[nodiscard]] bool contains(std::int64_t layer) const { return layer >= first && layer < first + count; }
};

// One entry of a stage's order of work.
struct PipelineSlot {
  bool is_backward = false;
  std::int64_t chunk = 0;  // 0 .. pipeline_chunks - 1
  std::int64_t micro_batch = 0;
};

class ParallelLayout {
 public:
  // `setup` as resolve() gave it. gpus_per_machine >= 1.
  ParallelLayout(const TrainingSetup& setup, const ModelSpec& model, std::int64_t gpus_per_machine);

  [[nodiscard]] std::int64_t stages() const { return stages_; }
  [[nodiscard]] std::int64_t chunks() const { return chunks_; }  // per stage
  // Where a decoder beside an encoder begins; 0: no encoder, or no pipeline.
  [[nodiscard]] std::int64_t decoder_stage() const { return split_; }
  [[nodiscard]] LayerRange layers(std::int64_t stage, std::int64_t chunk) const;
  // Global index of a chunk in the order of the forward pass: chunk * stages + stage.
  [[nodiscard]] bool is_first(std::int64_t stage, std::int64_t chunk) const { return stage == 0 && chunk == 0; }
  [[nodiscard]] bool is_last(std::int64_t stage, std::int64_t chunk) const {
    return stage == stages_ - 1 && chunk == chunks_ - 1;
  }

  [[nodiscard]] GroupShape tensor_group() const { return group(tensor_, 1); }
  [[nodiscard]] GroupShape context_group() const { return group(context_, tensor_); }
  // Ranks that hold the same weights: data * context.
  [[nodiscard]] GroupShape gradient_group() const { return group(data_ * context_, tensor_); }
  // Ranks that share out one set of experts, and those that hold the same experts.
  [[nodiscard]] GroupShape expert_group() const { return group(expert_, tensor_); }
  [[nodiscard]] GroupShape expert_gradient_group() const {
    return group(data_ * context_ / expert_, tensor_ * expert_);
  }
  // Two stages (neighbours, or first and last for tied embeddings); per_machine is 2 when they share a machine.
  [[nodiscard]] GroupShape stage_pair(std::int64_t one, std::int64_t other) const;

 private:
  void spread(std::int64_t first_layer, std::int64_t layers, std::span<LayerRange> over);
  // `ranks` ranks `stride` apart, starting at rank 0.
  [[nodiscard]] GroupShape group(std::int64_t ranks, std::int64_t stride) const;

  std::int64_t stages_, chunks_, split_, tensor_, context_, data_, expert_, per_machine_;
  std::vector<LayerRange> ranges_;  // by global chunk
};

// The order in which `stage` works. 1F1B: p - 1 - stage forwards, then forward and backward in turn, then the rest
// (Narayanan et al. 2021, PipeDream-Flush). Interleaved: warm-up of 2 (p - 1 - stage) + (v - 1) p chunk-forwards,
// micro-batches in groups of p (the same paper, section 2.2, as Megatron-LM schedules it). O(v m).
std::vector<PipelineSlot> pipeline_order(const TrainingSetup& setup, std::int64_t stage);

}  // namespace spillway
