// ParallelLayout: which rank does what, when a TrainingSetup spreads a step over GPUs.
//
// Ranks are numbered as Megatron-LM numbers them, the fastest index first: tensor, context, data, pipeline stage.
// So a tensor group is t neighbours, a data group d ranks t * c apart, and stages lie as far apart as they can.
// Machines hold `gpus_per_machine` neighbours each.
//
// The model is cut into p v positions, and a pipeline plan places them on the stages as their chunks: looped, in a V,
// or twice in opposite directions (models/pipeline/pipeline_plan.h).
//
// Layers over positions (an encoder's first, then the decoder's): each of p v gets layers / (p v) of them, rounded up.
// If that is too many, positions lose one layer each, from the last and the first inwards, since these also hold the
// head and the embedding (22 layers on 8 stages: 2, 3, 3, 3, 3, 3, 3, 2). With an encoder, its layers go so over the
// first `pipeline_split` stages, and the decoder's over the others. nanotron cuts by the work of layers
// and the head instead. TrainingSetup::stage_layers goes before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

struct ModelSpec;

// The experts that a token goes to, of the ranks of a group, and what carries it (models/cost/token_exchange.h).
struct TokenRoute {
  std::int64_t chosen = 0;  // experts of a token; 0: what is exchanged are no tokens
  // The experts are in so many groups, of which a token chooses from so many; 0: from all.
  std::int64_t groups = 0, chosen_groups = 0;
  ExpertDispatcher dispatcher = ExpertDispatcher::nccl;
  bool combines = false;  // results come back
};

// The ranks of one communicator, for the time of its collectives. A machine is what the scale-up network joins: where
// that is more than one host (NVL72), all of these.
struct GroupShape {
  std::int64_t ranks = 1;
  std::int64_t per_machine = 1;  // of the group's ranks, in each machine it touches
  std::int64_t stride = 1;       // GPUs from one of them to the next
  TokenRoute tokens{};           // of an all-to-all
};

struct LayerRange {
  std::int64_t first = 0, count = 0;
  [[nodiscard]] bool contains(std::int64_t layer) const { return layer >= first && layer < first + count; }
};

class ParallelLayout {
 public:
  // A chunk of a stage; stage -1: there is none.
  struct Site {
    std::int64_t stage = -1, chunk = 0;
  };

  // `setup` as resolve() gave it. gpus_per_machine >= 1. The plan is one of setup.pipeline_parallel devices;
  // only its placement counts.
  // gpus_per_host: 0: as many; where a machine is several hosts, a divisor of it.
  ParallelLayout(const TrainingSetup& setup, const ModelSpec& model, std::int64_t gpus_per_machine,
                 const PipelinePlan& plan, std::int64_t gpus_per_host = 0);

  [[nodiscard]] std::int64_t stages() const { return stages_; }
  [[nodiscard]] std::int64_t chunks() const {  // per stage, of all routes
    return static_cast<std::int64_t>(where_.size()) / stages_;
  }
  [[nodiscard]] std::int64_t routes() const { return static_cast<std::int64_t>(routes_.size()); }
  // The first stage of a decoder beside an encoder; 0: no encoder, or no pipeline.
  [[nodiscard]] std::int64_t decoder_stage() const { return split_; }
  [[nodiscard]] LayerRange layers(std::int64_t stage, std::int64_t chunk) const;
  // In the order of the forward pass.
  [[nodiscard]] std::int64_t position(std::int64_t stage, std::int64_t chunk) const {
    return at(stage, chunk).position;
  }
  [[nodiscard]] bool is_first(std::int64_t stage, std::int64_t chunk) const { return position(stage, chunk) == 0; }
  [[nodiscard]] bool is_last(std::int64_t stage, std::int64_t chunk) const {
    return position(stage, chunk) + 1 == static_cast<std::int64_t>(ranges_.size());
  }
  [[nodiscard]] Site previous(std::int64_t stage, std::int64_t chunk) const { return beside(stage, chunk, -1); }
  [[nodiscard]] Site next(std::int64_t stage, std::int64_t chunk) const { return beside(stage, chunk, 1); }
  // Of the first route.
  [[nodiscard]] std::int64_t first_stage() const { return routes_.front().front().device; }
  [[nodiscard]] std::int64_t last_stage() const { return routes_.front().back().device; }

  [[nodiscard]] GroupShape tensor_group() const { return group(tensor_, 1); }
  [[nodiscard]] GroupShape context_group() const { return group(context_, tensor_); }
  // Ranks that hold the same weights: data * context.
  [[nodiscard]] GroupShape gradient_group() const { return group(data_ * context_, tensor_); }
  // The neighbours among these that share out one copy of what ZeRO splits, and those with the same share of each copy.
  [[nodiscard]] GroupShape shard_group() const { return group(data_ * context_ / copies_, tensor_); }
  [[nodiscard]] GroupShape copy_group() const { return group(copies_, tensor_ * context_ * data_ / copies_); }
  // Ranks that share out one set of experts, and those that hold the same experts, of one copy. Experts that tensor
  // ranks hold whole are spread over these too.
  [[nodiscard]] GroupShape expert_group() const { return group(expert_, expert_stride_); }
  [[nodiscard]] GroupShape expert_gradient_group() const {
    return group(data_ * context_ * tensor_ / expert_stride_ / expert_ / copies_, expert_stride_ * expert_);
  }
  [[nodiscard]] std::int64_t gpus_per_host() const { return per_host_; }
  // Two stages (neighbours, or first and last for tied embeddings); per_machine is 2 when they share a machine.
  [[nodiscard]] GroupShape stage_pair(std::int64_t one, std::int64_t other) const;

 private:
  struct Where {
    std::size_t route = 0;
    std::int64_t position = 0;
  };
  [[nodiscard]] const Where& at(std::int64_t stage, std::int64_t chunk) const {
    return where_.at(static_cast<std::size_t>(chunk * stages_ + stage));
  }
  [[nodiscard]] Site beside(std::int64_t stage, std::int64_t chunk, std::int64_t step) const;
  void spread_by_cost(const ModelSpec& model);
  void spread(std::int64_t first_layer, std::int64_t layers, std::span<LayerRange> over);
  // `ranks` ranks `stride` apart, starting at rank 0.
  [[nodiscard]] GroupShape group(std::int64_t ranks, std::int64_t stride) const;

  std::int64_t stages_, split_, tensor_, context_, data_, copies_, expert_, expert_stride_, per_machine_, per_host_;
  std::vector<std::vector<PipelinePlan::Place>> routes_;
  std::vector<Where> where_;        // by chunk and stage
  std::vector<LayerRange> ranges_;  // by position
};

}  // namespace spillway::models
