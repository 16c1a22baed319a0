// Draws of experts' rows against closed forms of their distributions.
#include "models/spec/expert_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/input_error.h"

namespace spillway::models {
namespace {

constexpr std::int64_t expert_layers = 40, passes = 100;

ModelSpec experts(std::int64_t count, std::int64_t active) {
  ModelSpec model = find_model("mixtral-8x7b");
  model.experts.count = count;
  model.experts.active = active;
  return model;
}

TrainingSetup drawn(std::int64_t ranks, double cv, ExpertSpread spread = ExpertSpread::dirichlet) {
  TrainingSetup setup;
  setup.expert_parallel = ranks;
  setup.expert_load = spread;
  setup.expert_load_cv = cv;
  return setup;
}

template <class Value>
double mean_over_draws(const Value& value) {
  double sum = 0;
  for (std::int64_t layer = 0; layer < expert_layers; ++layer)
    for (std::int64_t pass = 0; pass < passes; ++pass) sum += value(layer, pass);
  return sum / static_cast<double>(expert_layers * passes);
}

// Dirichlet(1, ..., 1) cuts a stick at random places: the longest of E pieces has (1 + 1/2 + ... + 1/E) / E in the
// mean.
TEST(ExpertLoad, FullestRankIsTheLongestPieceOfARandomStick) {
  for (const std::int64_t E : {4, 8, 16}) {
    const double cv = std::sqrt(static_cast<double>(E - 1) / static_cast<double>(E + 1));
    const ExpertLoad load(experts(E, 1), drawn(E, cv));
    constexpr std::int64_t tokens = 100'000;
    double harmonic = 0;
    for (std::int64_t i = 1; i <= E; ++i) harmonic += 1 / static_cast<double>(i);
    const double fullest = mean_over_draws([&](std::int64_t layer, std::int64_t pass) {
      return static_cast<double>(load.rows(layer, pass, tokens).fullest);
    });
    EXPECT_NEAR(fullest / static_cast<double>(tokens * E), harmonic / static_cast<double>(E),
                0.01 * harmonic / static_cast<double>(E))
        << E;
  }
}

// The mean of a share is 1 / E, its standard deviation cv / E. Sums of n shares have 1 / sqrt(n) of that, but for what
// shares that add up to 1 take from each other: (E - n) / (E - 1) of the variance.
TEST(ExpertLoad, SharesSpreadAsStated) {
  for (const ExpertSpread spread : {ExpertSpread::dirichlet, ExpertSpread::lognormal}) {
    for (const double cv : {0.3, 0.6}) {
      constexpr std::int64_t E = 64, n = 8;
      const ExpertLoad load(experts(E, 1), drawn(E / n, cv, spread));
      double squares = 0, of_sums = 0;
      for (std::int64_t layer = 0; layer < expert_layers; ++layer) {
        for (std::int64_t pass = 0; pass < passes; ++pass) {
          const std::vector<double> shares = load.shares(layer, pass);
          EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
          for (const double share : shares) squares += (share * E - 1) * (share * E - 1);
          const double sum = std::accumulate(shares.begin(), shares.begin() + n, 0.0);
          of_sums += (sum * E / n - 1) * (sum * E / n - 1);
        }
      }
      const double draws = expert_layers * passes, of_one = std::sqrt(squares / draws / E);
      // Dividing by their own sum makes lognormal shares a little more even.
      EXPECT_NEAR(of_one, cv, spread == ExpertSpread::dirichlet ? 0.01 * cv : 0.04 * cv);
      const double apart = static_cast<double>(E - n) / (E - 1);
      EXPECT_NEAR(std::sqrt(of_sums / draws), of_one * std::sqrt(apart / n), 0.03 * cv);
    }
  }
}

// Over draws every rank gets t k rows; in each draw all ranks together get e t k.
TEST(ExpertLoad, EveryRowIsThereOnce) {
  constexpr std::int64_t E = 32, k = 4, e = 8, tokens = 1000;
  for (const ExpertSpread spread : {ExpertSpread::dirichlet, ExpertSpread::lognormal}) {
    ExpertLoad load(experts(E, k), drawn(e, 0.8, spread));
    for (std::int64_t pass = 0; pass < 20; ++pass) {
      std::int64_t sum = 0, most = 0;
      for (std::int64_t rank = 0; rank < e; ++rank) {
        load.show(rank);
        const ExpertRows rows = load.rows(3, pass, tokens);
        EXPECT_EQ(rows.sent, tokens * k);
        EXPECT_EQ(rows.local.size(), static_cast<std::size_t>(E / e));
        EXPECT_EQ(std::accumulate(rows.local.begin(), rows.local.end(), std::int64_t{0}), rows.own);
        sum += rows.own;
        most = std::max(most, rows.own);
        EXPECT_LE(rows.own, rows.fullest);
        for (const std::int64_t each : rows.local) EXPECT_LE(each, tokens * e + 1);  // one row of a token at most
      }
      EXPECT_EQ(sum, e * tokens * k);
      EXPECT_EQ(load.rows(3, pass, tokens).fullest, most);
    }
    load.show(2);
    const double mean = mean_over_draws(
        [&](std::int64_t layer, std::int64_t pass) { return static_cast<double>(load.rows(layer, pass, tokens).own); });
    EXPECT_NEAR(mean / (tokens * k), 1, 0.02);
  }
}

// Padded, an expert has exactly e ceil(t k c / E) rows; else that at most, and as many fewer are sent.
TEST(ExpertLoad, CapacityCutsOrPads) {
  constexpr std::int64_t E = 16, k = 2, e = 4, tokens = 1001;
  TrainingSetup setup = drawn(e, 0.9);
  setup.expert_capacity = 1.25;
  const std::int64_t most = 157;  // ceil(1001 * 2 / 16 * 1.25) = ceil(156.4)
  const ExpertLoad cuts(experts(E, k), setup);
  const ExpertRows rows = cuts.rows(0, 0, tokens);
  EXPECT_LT(rows.sent, tokens * k);
  for (const std::int64_t each : rows.local) EXPECT_LE(each, e * most);
  setup.static_experts = true;
  const ExpertLoad pads(experts(E, k), setup);
  const ExpertRows padded = pads.rows(0, 0, tokens);
  EXPECT_EQ(padded.own, E / e * e * most);
  EXPECT_EQ(padded.fullest, padded.own);
  EXPECT_EQ(padded.sent, E * most);
}

TEST(ExpertLoad, SameSeedSameDrawEverywhere) {
  TrainingSetup setup = drawn(4, 0.6, ExpertSpread::lognormal);
  const ExpertLoad one(experts(16, 2), setup);
  const ExpertRows first = one.rows(7, 3, 4096);
  EXPECT_EQ(one.rows(7, 3, 4096).local, first.local);
  EXPECT_NE(one.rows(7, 4, 4096).local, first.local);
  EXPECT_NE(one.rows(8, 3, 4096).local, first.local);
  setup.expert_load_seed = 2;
  EXPECT_NE(ExpertLoad(experts(16, 2), setup).rows(7, 3, 4096).local, first.local);
  const auto whole = [](ExpertSpread spread) {
    return ExpertLoad(experts(8, 2), drawn(1, 0.6, spread)).rows(7, 3, 4096);
  };
  EXPECT_EQ(whole(ExpertSpread::lognormal).local,
            (std::vector<std::int64_t>{1301, 1358, 811, 685, 1070, 1198, 1136, 633}));
  EXPECT_EQ(whole(ExpertSpread::dirichlet).local,
            (std::vector<std::int64_t>{738, 218, 275, 1954, 615, 918, 1643, 1831}));
  EXPECT_EQ(step_seed(5, 0), 5);
  EXPECT_NE(step_seed(5, 1), step_seed(5, 2));
}

TEST(ExpertLoad, ShowsTheFullestRank) {
  ExpertLoad load(experts(16, 2), drawn(4, 0.9));
  load.show_fullest({1, 2}, 2);
  const std::int64_t shown = load.rank();
  const auto sum_of = [&](std::int64_t rank) {
    load.show(rank);
    std::int64_t sum = 0;
    for (const std::int64_t layer : {1, 2})
      for (const std::int64_t pass : {0, 1}) sum += load.rows(layer, pass, 100'000).own;
    return sum;
  };
  for (std::int64_t rank = 0; rank < 4; ++rank) EXPECT_LE(sum_of(rank), sum_of(shown));
}

std::string complaint(const ModelSpec& model, const TrainingSetup& setup) {
  try {
    resolve(setup, model);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ExpertLoad, RefusesWhatMakesNoSense) {
  const ModelSpec model = find_model("mixtral-8x7b");
  TrainingSetup setup = drawn(2, 0.6);
  setup.data_parallel = 2;
  EXPECT_EQ(complaint(model, setup), "");
  EXPECT_NE(complaint(find_model("llama-3-8b"), setup).find("expert_load"), std::string::npos);
  TrainingSetup wrong = setup;
  wrong.expert_load_cv = 0;
  EXPECT_NE(complaint(model, wrong).find("expert_load_cv"), std::string::npos);
  wrong = setup;
  wrong.expert_imbalance = 1.5;
  EXPECT_NE(complaint(model, wrong).find("leave out expert_imbalance or expert_load"), std::string::npos);
  wrong = setup;
  wrong.expert_capacity = 9;
  EXPECT_NE(complaint(model, wrong).find("expert_capacity"), std::string::npos);
  wrong = setup;
  wrong.expert_load_steps = 65;
  EXPECT_NE(complaint(model, wrong).find("expert_load_steps"), std::string::npos);
}

}  // namespace
}  // namespace spillway::models
