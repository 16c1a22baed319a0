// Against closed forms, and against what was measured over many machines.
#include "models/cost/collective_time.h"

#include <gtest/gtest.h>

#include "hwprofiles/profile_library.h"

namespace spillway::models {
namespace {

Sourced<Rate> gigabytes_per_second(double rate) { return {rate_from_bytes_per_second(rate * 1e9), {}}; }

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

// A group of 16 in a table that ends at 2: the bus bandwidth of 2, and an all-gather's 14 steps more.
TEST(CollectiveCost, GroupsBeyondATablePayForTheirSteps) {
  NetworkProfile network = plain_network();
  network.collectives.push_back(
      {NetworkCollective::all_gather, CurveFamily({{2, Curve({{1e6, 50e9}, {1e9, 50e9}}, Curve::Scale::log)}}), {}});
  const CollectiveTime time = collective_time(network, NetworkCollective::all_gather, Bytes(800'000'000), 16);
  EXPECT_TRUE(time.measured && time.extrapolated);
  EXPECT_NEAR(to_seconds(time.time), 15e-3 + 14e-6, 1e-9);
}

// 16 ranks on two machines, 1 GB, 100 GB/s inside and between. Inside 7/8 of 10 ms, between 15/16 of an eighth of it:
// the inner part counts, and of the outer one the 134 MB under way, besides 7 inner steps.
TEST(CollectiveCost, MachinesAreOneRing) {
  HardwareProfile system;
  system.scale_up = plain_network();
  system.scale_out = plain_network();
  const Bytes gigabyte(1'000'000'000);
  const double inside = 8.75e-3 + 7e-6, across = 10e-3 / 8 * 15 / 16 + 1e-6, under_way = 16 * 8.388608e-3;
  EXPECT_NEAR(to_seconds(collective_time(system, NetworkCollective::all_gather, gigabyte, 16, 8).time),
              inside + across * under_way + 7e-6, 1e-8);
  // Switches that add: what crosses is the machines' sums, half of it each way, not 15/16.
  const auto all_reduce = [&] {
    return to_seconds(collective_time(system, NetworkCollective::all_reduce, gigabyte, 16, 8).time);
  };
  system.scale_up->bandwidth = gigabytes_per_second(10'000);
  EXPECT_NEAR(all_reduce(), 2 * 1.25e-3 * 15 / 16 + 2e-6, 20e-6);
  system.scale_up->switch_reduction = Sourced<double>{1.33, {}};
  EXPECT_NEAR(all_reduce(), 2 * 1.25e-3 / 2 + 2e-6, 20e-6);
}

// Bus bandwidths as NCCL's tests print them; the sources are in the header.
TEST(CollectiveCost, IsNearWhatWasMeasuredOverMachines) {
  struct Row {
    const char* system;
    NetworkCollective kind;
    std::int64_t bytes, gpus;
    double measured, within;
  };
  const auto library = ProfileLibrary::standard();
  for (const Row& row : {Row{"dgx-h100", NetworkCollective::all_reduce, std::int64_t{8} << 30, 16, 440, 0.10},
                         Row{"hgx-b200", NetworkCollective::all_reduce, std::int64_t{8} << 30, 16, 690, 0.05},
                         Row{"dgx-h100", NetworkCollective::all_reduce, std::int64_t{2} << 30, 256, 340, 0.10},
                         Row{"dgx-h100", NetworkCollective::all_gather, std::int64_t{2} << 30, 256, 200, 0.15},
                         Row{"hgx-a100-4hdr", NetworkCollective::all_reduce, std::int64_t{4} << 30, 16, 86, 0.05},
                         Row{"hgx-a100-4hdr", NetworkCollective::all_reduce, std::int64_t{128} << 20, 24, 84.8, 0.10},
                         Row{"cloud-8xa100", NetworkCollective::all_reduce, std::int64_t{1} << 30, 32, 29.6, 0.10},
                         Row{"gb200-nvl72", NetworkCollective::all_reduce, std::int64_t{1} << 30, 72, 681, 0.10}}) {
    const HardwareProfile system = library.load_system(row.system);
    const auto time = collective_time(system, row.kind, Bytes(row.bytes), row.gpus, row.gpus == 72 ? 72 : 8);
    const double bus = static_cast<double>(row.bytes) * bus_factor(row.kind, static_cast<double>(row.gpus)) /
                       to_seconds(time.time) / 1e9;
    EXPECT_NEAR(bus / row.measured, 1, row.within) << row.system << " " << row.gpus << ": " << bus;
  }
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
}  // namespace spillway::models
