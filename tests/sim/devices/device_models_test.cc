#include <gtest/gtest.h>

#include <cmath>

#include "base/input_error.h"
#include "sim/devices/nvme_drive.h"

namespace spillway::sim {
namespace {

Sourced<Rate> gigabytes_per_second(double rate) { return {rate_from_bytes_per_second(rate * 1e9), {}}; }

NvmeProfile cached_drive() {
  NvmeProfile drive;
  drive.read_bandwidth = gigabytes_per_second(7);
  drive.write_bandwidth = gigabytes_per_second(4);
  drive.steady_write_bandwidth = gigabytes_per_second(1.5);
  drive.write_cache = Sourced<Bytes>{Bytes(113'000'000'000), {}};
  return drive;
}

// 113 GB taken at 4 GB/s while 1.5 GB/s drains fill a reservoir of 113 * (4 - 1.5) / 4 = 70.625 GB.
TEST(NvmeDrive, CacheIsFullAfterTheReviewedBytes) {
  const NvmeModel model = nvme_model(cached_drive());
  ASSERT_TRUE(model.cache);
  EXPECT_NEAR(static_cast<double>(model.cache->size.count()), 70.625e9, 1e6);
  EXPECT_EQ(model.cache->drain, model.steady_write);
}

// 5 GB/s for 280 GB, then 2.5 GB/s for 100 GB, then 0.8: 280 * 4.2 / 5 and 100 * 1.7 / 2.5 more.
TEST(NvmeDrive, FoldingFollowsTheCache) {
  NvmeProfile drive = cached_drive();
  drive.write_bandwidth = gigabytes_per_second(5);
  drive.steady_write_bandwidth = gigabytes_per_second(0.8);
  drive.write_cache = Sourced<Bytes>{Bytes(280'000'000'000), {}};
  drive.folding_write_bandwidth = gigabytes_per_second(2.5);
  drive.folding_bytes = Sourced<Bytes>{Bytes(100'000'000'000), {}};
  const NvmeModel model = nvme_model(drive);
  ASSERT_TRUE(model.cache);
  EXPECT_NEAR(static_cast<double>(model.cache->fold_level.count()), 235.2e9, 1e6);
  EXPECT_NEAR(static_cast<double>(model.cache->size.count()), 235.2e9 + 68e9, 1e6);
  EXPECT_LT(model.cache->resume_level, model.cache->fold_level);
  drive.folding_write_bandwidth = gigabytes_per_second(0.7);
  EXPECT_EQ(nvme_model(drive).cache->fold_level, Bytes(0)) << "no faster than the steady rate";
}

// Little's law: one 4 KiB command in flight at 80 us moves 51.2 MB/s.
TEST(NvmeDrive, WindowFollowsLittlesLaw) {
  NvmeProfile drive = cached_drive();
  drive.read_latency = Sourced<Picos>{microseconds(80), {}};
  EXPECT_NEAR(to_bytes_per_second(nvme_model(drive, Bytes(4096), 1).read_window), 51.2e6, 1e3);
}

TEST(NvmeDrive, WithoutRatesIsAnInputError) { EXPECT_THROW(nvme_model(NvmeProfile{}), InputError); }

// 2.4 PB at 6.5 TB a step of 1000 s: 369.23 steps, 4.27 days.
TEST(NvmeDrive, LifeIsEnduranceOverRate) {
  EXPECT_NEAR(life_years(Bytes(2'400'000'000'000'000), Bytes(6'500'000'000'000), picos_per_second * 1000) * 365, 4.2735,
              1e-3);
  EXPECT_TRUE(std::isinf(life_years(Bytes(1), Bytes(0), Picos(1))));
}

}  // namespace
}  // namespace spillway::sim
