#include "models/spec/activation_volume.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace spillway::models {
namespace {

constexpr double gib = 1073741824;

ActivationProjection table_iii(std::int64_t hidden, std::int64_t layers) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = hidden / 128,
          .vocabulary = 32000,
          .sequence = 1024,
          .micro_batch = 16,
          .tensor_parallel = 2,
          .flops_per_second = 153e12,
          .memory_bandwidth = 1935e9,
          .link_bandwidth = 300e9};
}

ActivationProjection zero3_175b() {
  return {.layers = 96,
          .hidden = 12288,
          .heads = 96,
          .vocabulary = 50272,
          .sequence = 2048,
          .micro_batch = 16,
          .data_parallel = 384,
          .zero_stage = 3,
          .flops_per_second = 144e12,
          .memory_bandwidth = 2039e9,
          .link_bandwidth = 300e9};
}

// The three printed set-ups: volume, forward time and the bandwidth they ask for.
TEST(ActivationVolume, TheAuthorsThreeConfigurations) {
  struct Row {
    std::int64_t hidden, layers;
    double volume, forward, bandwidth;
  };
  for (const Row& row : {Row{8192, 4, 11.1289, 0.38964, 19.0415}, Row{12288, 3, 12.5996, 0.64334, 13.0565},
                         Row{16384, 2, 11.5039, 0.76382, 10.0407}}) {
    const ActivationProjection p = table_iii(row.hidden, row.layers);
    EXPECT_NEAR(activation_volume(p) / gib, row.volume, 5.1e-5) << row.hidden;
    EXPECT_NEAR(forward_seconds(p), row.forward, 5.1e-6) << row.hidden;
    EXPECT_NEAR(required_write_bandwidth(p) / gib, row.bandwidth, 1.01e-4) << row.hidden;
  }
}

// 12.09 GiB/s; 4 x 600 TB x 2.5 x 86 = 516 PB last 2.52 years, 6 PB 10.7 days.
TEST(ActivationVolume, LifeOfFourDrivesUnderTheLargestSystem) {
  const ActivationProjection p = zero3_175b();
  EXPECT_NEAR(required_write_bandwidth(p) / gib, 12.09, 0.005);
  EXPECT_NEAR(projected_life_years(p, 4 * 600e12 * 2.5 * 86), 2.521, 0.0005);
  EXPECT_NEAR(projected_life_years(p, 4 * 600e12 * 2.5) * 365, 10.7, 0.005);
  EXPECT_NEAR(bytes_written(p, 300e9) / 1e15, 37.98, 0.005);
  EXPECT_NEAR(training_seconds(p, 300e9) / 86400, 67.71, 0.005);
  EXPECT_EQ(projected_life_years(p, 0), 0);
}

// Gathering slower than a layer's compute stretches the layer to it; hidden behind compute it changes nothing.
TEST(ActivationVolume, GatheringHidesBehindComputeUntilItIsSlower) {
  ActivationProjection p = zero3_175b();
  const double hidden = forward_seconds(p);
  p.gather_bandwidth = 25e9;
  EXPECT_EQ(forward_seconds(p), hidden);
  p.gather_bandwidth = 1e9;
  const double weights = 2 * 12 * 12288.0 * 12288 * (383.0 / 384);
  EXPECT_GT(forward_seconds(p), 96 * weights / 1e9);
  EXPECT_GT(forward_seconds(p), hidden);
}

// Without sequence parallelism what tensor parallelism leaves whole is kept whole: more than with it.
TEST(ActivationVolume, SequenceParallelismShardsTheRest) {
  ActivationProjection p = table_iii(8192, 4);
  const double sharded = activation_volume(p);
  p.sequence_parallel = false;
  const double sbh = 1024.0 * 16 * 8192;
  EXPECT_NEAR(activation_volume(p) - sharded, (4 * 13 + 4) * sbh / 2, 1);
}

}  // namespace
}  // namespace spillway::models
