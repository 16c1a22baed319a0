#include <gtest/gtest.h>

#include <cmath>

#include "base/input_error.h"
#include "models/cost/collective_time.h"
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

NetworkProfile plain_network() {
  NetworkProfile network;
  network.bandwidth = gigabytes_per_second(100);
  network.efficiency.value = 1;
  network.latency.value = microseconds(1);
  network.max_group.value = 1024;
  return network;
}

// Ring, n = 4, 1 GB at 100 GB/s, alpha 1 us: all-reduce 6 us + 1.5 * 10 ms; all-gather 3 us + 0.75 * 10 ms.
TEST(CollectiveCost, RingMatchesTheClosedForm) {
  const NetworkProfile network = plain_network();
  const Bytes gigabyte(1'000'000'000);
  EXPECT_NEAR(to_seconds(collective_time(network, NetworkCollective::all_reduce, gigabyte, 4).time), 15.006e-3, 1e-8);
  EXPECT_NEAR(to_seconds(collective_time(network, NetworkCollective::all_gather, gigabyte, 4).time), 7.503e-3, 1e-8);
  EXPECT_EQ(collective_time(network, NetworkCollective::all_reduce, gigabyte, 1).time, Picos::zero());
}

// Small messages go by the tree: 2 log2(64) = 12 us instead of 126.
TEST(CollectiveCost, SmallAllReduceTakesTheTree) {
  EXPECT_NEAR(to_seconds(collective_time(plain_network(), NetworkCollective::all_reduce, Bytes(8), 64).time), 12e-6,
              1e-8);
}

// A measured bus bandwidth of 50 GB/s at n = 2: 1 GB * 2(n-1)/n / 50 GB/s = 20 ms.
TEST(CollectiveCost, TablesComeFirst) {
  NetworkProfile network = plain_network();
  network.collectives.push_back(
      {NetworkCollective::all_reduce, CurveFamily({{2, Curve({{1e6, 50e9}, {1e9, 50e9}}, Curve::Scale::log)}}), {}});
  const CollectiveTime time = collective_time(network, NetworkCollective::all_reduce, Bytes(1'000'000'000), 2);
  EXPECT_TRUE(time.measured && !time.extrapolated);
  EXPECT_NEAR(to_seconds(time.time), 20e-3, 1e-9);
  EXPECT_TRUE(collective_time(network, NetworkCollective::all_reduce, Bytes(10), 2).extrapolated);
}

// Two GPUs behind each port. 16 ranks, two in each of 8 machines and 4 GPUs apart: one behind each port they touch, so
// the ring leaves through the host, 2 * 15/16 of 1 GB at 5 GB/s and 14 steps. Neighbours close their ring at the port,
// and so does a group with one rank in each machine; both do better. A transfer needs no ring.
TEST(CollectiveCost, RingsOfGroupsWithOneRankBehindAPortGoThroughTheHost) {
  HardwareProfile system;
  system.scale_up = plain_network();
  system.scale_out = plain_network();
  const Bytes gigabyte(1'000'000'000);
  const auto seconds = [&](NetworkCollective kind, std::int64_t group, std::int64_t per_machine, std::int64_t stride) {
    return to_seconds(collective_time(system, kind, gigabyte, group, per_machine, stride).time);
  };
  const double own_ports = seconds(NetworkCollective::all_reduce, 16, 2, 4);
  system.scale_out->gpus_per_port = Sourced<std::int64_t>{2, {}};
  system.scale_out->ring_through_host = gigabytes_per_second(5);
  EXPECT_NEAR(seconds(NetworkCollective::all_reduce, 16, 2, 4), 14e-6 + 0.375, 1e-8);
  EXPECT_NEAR(seconds(NetworkCollective::all_gather, 16, 2, 4), 7e-6 + 0.1875, 1e-8);
  EXPECT_NEAR(seconds(NetworkCollective::all_reduce, 16, 2, 1), own_ports, 1e-12);
  EXPECT_LT(seconds(NetworkCollective::all_reduce, 16, 1, 8), 0.03);
  EXPECT_LT(seconds(NetworkCollective::send_receive, 16, 2, 4), 0.02);
}

}  // namespace
}  // namespace spillway::sim
