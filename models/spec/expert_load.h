// ExpertLoad: how many rows the experts of a layer get in one micro-batch, where routers don't spread tokens evenly.
//
// A rank's t tokens choose k of E experts each; the e ranks of an expert group have e t k rows to share out. Expert i
// gets a share of them, drawn again for every layer and micro-batch from (seed, layer, pass):
//
//   lognormal   exp(s z_i) over their sum, z_i standard normal, s^2 = ln(1 + cv^2)
//   dirichlet   Dirichlet(a, ..., a), a = ((E - 1) / cv^2 - 1) / E: the share's standard deviation over its mean is cv
//
// with cv = expert_load_cv. No expert gets more than one row of each token: a share above 1 / k is cut there and the
// others are scaled up. Shares become whole numbers of 2^-30 before rows are counted, and rows are the differences of
// rounded sums, so that every row is there once and all platforms agree. Experts lie on ranks in order, E / e on each.
//
// expert_capacity c: an expert takes at most ceil(t k c / E) rows of each sending rank (Megatron-core's
// --moe-expert-capacity-factor); the others aren't sent. With static_experts it gets exactly so many.
//
// Deviations: draws of neighbouring micro-batches and layers are independent, while routers of a trained model prefer
// the same experts for a while; every sending rank has the same shares.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"

namespace spillway::models {

// The loads of one layer in one micro-batch, at least 1 each.
struct ExpertRows {
  std::int64_t sent = 1;            // by a rank
  std::int64_t own = 1;             // that come to the rank shown
  std::int64_t fullest = 1;         // that come to the fullest
  std::vector<std::int64_t> local;  // of each expert of the rank shown
};

class ExpertLoad {
 public:
  // `setup` is resolved, has_expert_loads().
  ExpertLoad(const ModelSpec& model, const TrainingSetup& setup);

  // By expert, adding up to 1. O(E).
  [[nodiscard]] std::vector<double> shares(std::int64_t layer, std::int64_t pass) const;
  // `tokens`: of each rank. `pass`: micro-batch, or slice of one.
  [[nodiscard]] ExpertRows rows(std::int64_t layer, std::int64_t pass, std::int64_t tokens) const;
  // The rank with most rows over these layers and passes 0 .. passes - 1, before any are dropped; it is the one shown
  // from here on. O(layers passes E).
  void show_fullest(const std::vector<std::int64_t>& layers, std::int64_t passes);
  void show(std::int64_t rank) { rank_ = rank; }
  [[nodiscard]] std::int64_t rank() const { return rank_; }

 private:
  [[nodiscard]] std::vector<std::int64_t> counts(std::int64_t layer, std::int64_t pass, std::int64_t all) const;

  ExpertSpread spread_;
  double cv_, capacity_;
  bool pads_;
  std::uint64_t seed_;
  std::int64_t experts_, active_, ranks_, rank_ = 0;
};

// Seed of a step before the one shown; 0: of that itself.
[[nodiscard]] std::int64_t step_seed(std::int64_t seed, std::int64_t steps_before);

// Rows of the fullest rank over the mean, of 32 draws. Precondition: has_expert_loads().
double fullest_over_mean(const ModelSpec& model, const TrainingSetup& setup);

}  // namespace spillway::models
