#include "models/spec/expert_load.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/input_error.h"
#include "base/splitmix64.h"

namespace spillway::models {
namespace {

// Numbers whose distributions are the same everywhere.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}

  double uniform() { return (static_cast<double>(bits_.next() >> 11U) + 0.5) * 0x1p-53; }  // in (0, 1)
  // Box and Muller 1958.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  // Marsaglia and Tsang 2000; shapes below 1 by way of shape + 1.
  double gamma(double shape) {
    if (shape < 1) {
      const double raised = gamma(shape + 1);
      return raised * std::pow(uniform(), 1 / shape);
    }
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal(), base = 1 + c * x, v = base * base * base;
      if (v > 0 && std::log(uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
    }
  }

 private:
  SplitMix64 bits_;
};

void normalise(std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share = sum > 0 ? share / sum : 1 / static_cast<double>(shares.size());
}

// None above `most`, which is at least their mean; what is cut off goes to the others as their shares have it.
void cut(std::vector<double>& shares, double most) {
  std::vector<bool> is_cut(shares.size(), false);
  for (bool found = true; found;) {
    found = false;
    double rest = 1, below = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (!is_cut[i] && shares[i] > most) is_cut[i] = found = true;
      is_cut[i] ? rest -= most : below += shares[i];
    }
    if (!found) return;
    for (std::size_t i = 0; i < shares.size(); ++i)
      shares[i] = is_cut[i] ? most : below > 0 ? shares[i] * std::max(0.0, rest) / below : 0;
  }
}

}  // namespace

ExpertLoad::ExpertLoad(const ModelSpec& model, const TrainingSetup& setup)
    : spread_(setup.expert_load),
      cv_(setup.expert_load_cv),
      capacity_(setup.expert_capacity),
      pads_(setup.static_experts),
      seed_(static_cast<std::uint64_t>(setup.expert_load_seed)),
      experts_(model.experts.count),
      active_(model.experts.active),
      ranks_(setup.expert_parallel) {
  SPILLWAY_ASSERT(experts_ > 0 && active_ > 0 && experts_ % ranks_ == 0);
}

std::vector<double> ExpertLoad::shares(std::int64_t layer, std::int64_t pass) const {
  std::vector<double> shares(static_cast<std::size_t>(experts_), 1 / static_cast<double>(experts_));
  if (spread_ == ExpertSpread::even || experts_ == 1) return shares;
  const auto place = static_cast<std::uint64_t>(layer) * odd_multiplier ^ static_cast<std::uint64_t>(pass);
  Draw draw(splitmix64(seed_ ^ splitmix64(place)));
  const double sigma = std::sqrt(std::log(1 + cv_ * cv_)), experts = static_cast<double>(experts_),
               shape = std::max(1e-3, ((experts - 1) / (cv_ * cv_) - 1) / experts);
  for (double& share : shares)
    share = spread_ == ExpertSpread::lognormal ? std::exp(sigma * draw.normal()) : draw.gamma(shape);
  normalise(shares);
  cut(shares, 1 / static_cast<double>(active_));
  return shares;
}

std::vector<std::int64_t> ExpertLoad::counts(std::int64_t layer, std::int64_t pass, std::int64_t all) const {
  const std::vector<double> drawn = shares(layer, pass);
  std::vector<std::int64_t> weights, counts;
  for (const double share : drawn) weights.push_back(std::llround(share * 0x1p30));
  const auto whole = static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
  std::int64_t sum = 0, given = 0;
  for (const std::int64_t weight : weights) {
    sum += weight;
    const double until = static_cast<double>(sum) / whole * static_cast<double>(all);
    const std::int64_t end = std::llround(until);
    counts.push_back(end - given);
    given = end;
  }
  return counts;
}

ExpertRows ExpertLoad::rows(std::int64_t layer, std::int64_t pass, std::int64_t tokens) const {
  const std::int64_t chosen = tokens * active_, all = chosen * ranks_, local = experts_ / ranks_;
  std::vector<std::int64_t> each = counts(layer, pass, all);
  if (capacity_ > 0) {
    const double mean = static_cast<double>(chosen) / static_cast<double>(experts_);
    const std::int64_t most = ranks_ * std::min(tokens, static_cast<std::int64_t>(std::ceil(mean * capacity_)));
    for (std::int64_t& rows : each) rows = pads_ ? most : std::min(rows, most);
  }
  ExpertRows result;
  const std::int64_t sum = std::accumulate(each.begin(), each.end(), std::int64_t{0});
  result.sent = std::max<std::int64_t>(1, sum / ranks_);
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    const auto first = each.begin() + static_cast<std::ptrdiff_t>(rank * local), last = first + local;
    const std::int64_t rows = std::max<std::int64_t>(1, std::accumulate(first, last, std::int64_t{0}));
    result.fullest = std::max(result.fullest, rows);
    if (rank != rank_) continue;
    result.own = rows;
    result.local.assign(first, last);
  }
  return result;
}

void ExpertLoad::show_fullest(const std::vector<std::int64_t>& layers, std::int64_t passes) {
  std::vector<double> sums(static_cast<std::size_t>(ranks_), 0);
  const std::int64_t local = experts_ / ranks_;
  for (const std::int64_t layer : layers) {
    for (std::int64_t pass = 0; pass < passes && ranks_ > 1; ++pass) {
      const std::vector<double> drawn = shares(layer, pass);
      for (std::int64_t i = 0; i < experts_; ++i)
        sums[static_cast<std::size_t>(i / local)] += drawn[static_cast<std::size_t>(i)];
    }
  }
  rank_ = std::max_element(sums.begin(), sums.end()) - sums.begin();
}

double fullest_over_mean(const ModelSpec& model, const TrainingSetup& setup) {
  constexpr std::int64_t draws = 32;
  const ExpertLoad load(model, setup);
  const std::int64_t tokens = setup.micro_batch * setup.slice_tokens();
  double rows = 0;
  for (std::int64_t i = 0; i < draws; ++i) rows += static_cast<double>(load.rows(i, 0, tokens).fullest) / draws;
  const double mean = static_cast<double>(tokens * model.experts.active);
  return std::clamp(rows / mean, 1.0, static_cast<double>(setup.expert_parallel));
}

std::int64_t step_seed(std::int64_t seed, std::int64_t steps_before) {
  if (steps_before == 0) return seed;
  return static_cast<std::int64_t>(
      splitmix64(static_cast<std::uint64_t>(seed) + static_cast<std::uint64_t>(steps_before) * golden_gamma));
}

}  // namespace spillway::models
