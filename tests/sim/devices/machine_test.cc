#include "sim/devices/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "sim/engine/executor.h"

namespace spillway::sim {
namespace {

// 2^20 rate units are one byte a nanosecond exactly.
Rate per_ns(std::int64_t bytes) { return Rate(bytes << 20); }
Sourced<Rate> sourced(std::int64_t bytes_per_ns) { return {per_ns(bytes_per_ns), {}}; }

PcieNode node(std::string name, PcieNodeKind kind, std::optional<std::size_t> up) {
  PcieNode made;
  made.name = std::move(name);
  made.kind = kind;
  made.up = up;
  return made;
}

// cpu0 ── sw0 (32 B/ns) ── gpu0, gpu1 (20 B/ns in and out), drives (8 read, 4 write).
HardwareProfile small_machine(std::int64_t drives) {
  HardwareProfile profile;
  profile.gpu.memory_bandwidth = sourced(2000);
  profile.gpu.pcie_generation.value = 4;
  profile.gpu.pcie_lanes.value = 16;
  profile.gpu.host_to_device_bandwidth = sourced(20);
  profile.gpu.device_to_host_bandwidth = sourced(20);
  profile.gpu.hbm_contention_factor.value = 1;
  profile.gpu_count = 2;
  profile.host.dram_bandwidth = sourced(200);
  profile.host.pcie_payload_efficiency.value = 0.8;
  profile.host.bounce_copies.value = 2;
  profile.host.pcie = {node("cpu0", PcieNodeKind::root_complex, {}), node("sw0", PcieNodeKind::pcie_switch, 0)};
  profile.host.pcie[1].bandwidth = sourced(32);
  for (const char* gpu : {"gpu0", "gpu1"}) profile.host.pcie.push_back(node(gpu, PcieNodeKind::gpu_slot, 1));
  for (std::int64_t i = 0; i < drives; ++i) {
    profile.host.pcie.push_back(node("drive" + std::to_string(i), PcieNodeKind::drive_slot, 1));
  }
  if (drives > 0) {
    DriveGroup group;
    group.name = "scratch";
    group.count = drives;
    group.drive.name = "test drive";
    group.drive.pcie_generation.value = 4;
    group.drive.pcie_lanes.value = 4;
    group.drive.read_bandwidth = sourced(8);
    group.drive.write_bandwidth = sourced(4);
    profile.drives.push_back(group);
  }
  assign_slots(profile, false);
  return profile;
}

struct Transfer {
  PathId path;
  std::int64_t bytes;
};

// Ends of transfers that all start at 0.
std::vector<Picos> run(ActivityGraph graph, const std::vector<Transfer>& transfers) {
  std::vector<ActivityId> flows;
  for (const Transfer& transfer : transfers) flows.push_back(graph.add_flow(no_lane, transfer.bytes, transfer.path));
  graph.finish();
  Executor<> executor(std::move(graph));
  EXPECT_TRUE(executor.run().ok());
  EXPECT_EQ(executor.check_conservation(), "");
  std::vector<Picos> ends;
  for (const ActivityId flow : flows) ends.push_back(executor.end(flow));
  return ends;
}

// bytes / rate, rounded up to a picosecond.
Picos time_at(std::int64_t bytes, std::int64_t bytes_per_ns) {
  return Picos((bytes * 1000 + bytes_per_ns - 1) / bytes_per_ns);
}

// One copy: the measured rate; 7 bytes at 20 B/ns are 350 ps, 1001 at 20 are 50.05 ns.
TEST(Machine, OneCopyTakesBytesOverRate) {
  ActivityGraph graph;
  const Machine machine(small_machine(0), graph);
  for (const std::int64_t bytes : {7, 1001, 123'456'789}) {
    EXPECT_EQ(run(graph, {{machine.host_to_device(0), bytes}})[0], time_at(bytes, 20));
    EXPECT_EQ(run(graph, {{machine.device_to_host(1), bytes}})[0], time_at(bytes, 20));
  }
}

// Without a measured rate: raw link rate times payload efficiency, of the lesser of slot and GPU.
TEST(Machine, RateWithoutMeasurementIsRawTimesEfficiency) {
  HardwareProfile profile = small_machine(0);
  profile.gpu.host_to_device_bandwidth.reset();
  profile.host.pcie[2].generation = Sourced<std::int64_t>{3, {}};
  profile.host.pcie[2].lanes = Sourced<std::int64_t>{16, {}};
  ActivityGraph graph;
  const Machine machine(profile, graph);
  const std::int64_t bytes = 1'000'000'000;
  const double seconds = to_seconds(run(graph, {{machine.host_to_device(0), bytes}})[0]);
  EXPECT_NEAR(1e9 / seconds, to_bytes_per_second(pcie_raw_rate(3, 16)) * 0.8, 2e3);
  // Measured at Gen4, plugged into Gen3: the slot limits.
  const double out = to_seconds(run(graph, {{machine.device_to_host(0), bytes}})[0]);
  EXPECT_NEAR(1e9 / out, to_bytes_per_second(pcie_raw_rate(3, 16)) * 0.8, 2e3);
}

// Two GPUs behind one uplink of 32 get 16 each; in opposite directions they don't meet.
TEST(Machine, GpusBehindOneSwitchShareItsUplink) {
  ActivityGraph graph;
  const Machine machine(small_machine(0), graph);
  const std::int64_t bytes = 1'000'000;
  for (const Picos end : run(graph, {{machine.host_to_device(0), bytes}, {machine.host_to_device(1), bytes}})) {
    EXPECT_EQ(end, time_at(bytes, 16));
  }
  for (const Picos end : run(graph, {{machine.host_to_device(0), bytes}, {machine.device_to_host(1), bytes}})) {
    EXPECT_EQ(end, time_at(bytes, 20));
  }
  // Peer to peer under the switch takes neither uplink nor DRAM: both at full rate.
  const auto ends = run(graph, {{machine.peer(0, 1), bytes}, {machine.device_to_host(1), bytes}});
  EXPECT_EQ(ends[0], time_at(bytes, 20));
  EXPECT_EQ(ends[1], time_at(bytes, 20));
}

// 20 each way alone, 25 together: 12.5 each; alone the limit doesn't bind.
TEST(Machine, DuplexLimitBindsBothDirections) {
  HardwareProfile profile = small_machine(0);
  profile.gpu.duplex_bandwidth = sourced(25);
  ActivityGraph graph;
  const Machine machine(profile, graph);
  const std::int64_t bytes = 1'000'000;
  for (const Picos end : run(graph, {{machine.host_to_device(0), bytes}, {machine.device_to_host(0), bytes}})) {
    EXPECT_EQ(end, time_at(2 * bytes, 25));
  }
  EXPECT_EQ(run(graph, {{machine.host_to_device(0), bytes}})[0], time_at(bytes, 20));
}

// RAID-0 of n writes at n x 4 until the GPU's own link (20) binds; GPUDirect doesn't use the uplink.
TEST(Machine, StripesAddUpUntilALinkBinds) {
  const std::int64_t bytes = 48'000'000;
  for (std::int64_t n = 1; n <= 8; ++n) {
    ActivityGraph graph;
    const Machine machine(small_machine(n), graph);
    const Picos end = run(graph, {{machine.gpu_to_drive(0, 0, DriveRoute::gpudirect), bytes}})[0];
    EXPECT_EQ(end, time_at(bytes, std::min<std::int64_t>(4 * n, 20))) << n;
  }
}

// Bounced, both of two GPUs' writes cross the uplink up and down: 8 drives at 4 = 32 = the uplink; a copy to host
// beside them takes its share of the way up.
TEST(Machine, BouncedWritesCrossTheUplink) {
  ActivityGraph graph;
  const Machine machine(small_machine(8), graph);
  const std::int64_t bytes = 48'000'000;
  for (const Picos end :
       run(graph, {{machine.gpu_to_drive(0, 0, DriveRoute::bounce), bytes}, {machine.device_to_host(1), bytes}})) {
    EXPECT_NEAR(to_seconds(end), to_seconds(time_at(bytes, 16)), 1e-9);
  }
  const Picos direct =
      run(graph, {{machine.gpu_to_drive(0, 0, DriveRoute::gpudirect), bytes}, {machine.device_to_host(1), bytes}})[0];
  EXPECT_EQ(direct, time_at(bytes, 20));
}

// Cache of 2 drives: 2 x 3 MB taken at 2 x 4 B/ns while 2 x 1 drain. Exactly those 6 MB take 750 us; the
// reservoir is then full at that very instant, and 2 MB more go at 2 B/ns: 1000 us.
TEST(Machine, CacheFillsAtTheExactInstant) {
  HardwareProfile profile = small_machine(2);
  profile.drives[0].drive.steady_write_bandwidth = sourced(1);
  profile.drives[0].drive.write_cache = Sourced<Bytes>{Bytes(3'000'000), {}};
  ActivityGraph graph;
  const Machine machine(profile, graph);
  ASSERT_TRUE(machine.drive_sets()[0].cache);
  const PathId path = machine.gpu_to_drive(0, 0, DriveRoute::gpudirect);
  EXPECT_EQ(run(graph, {{path, 6'000'000}})[0], microseconds(750));
  EXPECT_EQ(run(graph, {{path, 8'000'000}})[0], microseconds(1750));
}

// Interference 1: reads and writes share one budget, r/8 + w/4 <= 1 with equal shares r = w = 8/3. At 0.5 it is
// r/8 + w/4 <= 1.5: w = r = 4. Independent: 8 and 4.
TEST(Machine, ReadsAndWritesShareTheMedia) {
  const std::int64_t bytes = 8'000'000;
  for (const double interference : {1.0, 0.5, 0.0}) {
    HardwareProfile profile = small_machine(1);
    profile.drives[0].drive.read_write_interference = Sourced<double>{interference, {}};
    ActivityGraph graph;
    const Machine machine(profile, graph);
    const auto ends = run(graph, {{machine.gpu_to_drive(0, 0, DriveRoute::gpudirect), bytes},
                                  {machine.drive_to_gpu(0, 0, DriveRoute::gpudirect), bytes}});
    const Picos write = interference == 1.0 ? time_at(3 * bytes, 8) : time_at(bytes, 4);
    const Picos read = interference == 1.0 ? write : time_at(bytes, interference == 0.5 ? 4 : 8);
    EXPECT_NEAR(to_seconds(ends[0]), to_seconds(write), 2e-9) << interference;  // 8/3 is rounded down to a Rate
    EXPECT_NEAR(to_seconds(ends[1]), to_seconds(read), 2e-9) << interference;
  }
}

// Without RAID-0 each drive is a set of its own.
TEST(Machine, DrivesWithoutRaidStandAlone) {
  HardwareProfile profile = small_machine(3);
  profile.drives[0].raid0 = false;
  ActivityGraph graph;
  const Machine machine(profile, graph);
  ASSERT_EQ(machine.drive_sets().size(), 3U);
  EXPECT_EQ(machine.drive_sets()[2].name, "scratch.2");
  EXPECT_EQ(run(graph, {{machine.drive_to_gpu(1, 2, DriveRoute::bounce), 8000}})[0], microseconds(1));
}

// NVLink of 100 x 0.9 carries peer copies; the copy engines stay free.
TEST(Machine, PeersTakeTheFabric) {
  HardwareProfile profile = small_machine(0);
  profile.scale_up.emplace();
  profile.scale_up->technology = "NVLink";
  profile.scale_up->bandwidth = sourced(100);
  profile.scale_up->efficiency.value = 0.9;
  ActivityGraph graph;
  const Machine machine(profile, graph);
  const auto ends = run(graph, {{machine.peer(0, 1), 9'000'000}, {machine.device_to_host(0), 2'000'000}});
  EXPECT_NEAR(to_seconds(ends[0]), 100e-6, 1e-12);
  EXPECT_EQ(ends[1], microseconds(100));
}

// Two sockets: drives on the other one are reached over the socket link (3), and its two directions are apart.
TEST(Machine, TheOtherSocketIsReachedOverTheSocketLink) {
  HardwareProfile profile = small_machine(1);
  profile.host.pcie = {node("cpu0", PcieNodeKind::root_complex, {}), node("cpu1", PcieNodeKind::root_complex, {}),
                       node("gpu0", PcieNodeKind::gpu_slot, 0), node("gpu1", PcieNodeKind::gpu_slot, 1),
                       node("drive0", PcieNodeKind::drive_slot, 1)};
  profile.host.socket_bandwidth = sourced(3);
  assign_slots(profile, false);
  ActivityGraph graph;
  const Machine machine(profile, graph);
  const PathId write = machine.gpu_to_drive(0, 0, DriveRoute::gpudirect);
  const PathId read = machine.drive_to_gpu(0, 0, DriveRoute::gpudirect);
  const auto ends = run(graph, {{write, 3'000'000}, {read, 3'000'000}});
  EXPECT_EQ(ends[0], microseconds(1000));
  EXPECT_EQ(ends[1], microseconds(1000));
  EXPECT_EQ(run(graph, {{machine.gpu_to_drive(1, 0, DriveRoute::gpudirect), 4'000'000}})[0], microseconds(1000));
}

TEST(Machine, DrivesWithoutRatesAreAnInputError) {
  HardwareProfile profile = small_machine(1);
  profile.drives[0].drive.read_bandwidth.reset();
  ActivityGraph graph;
  EXPECT_THROW(Machine(profile, graph), InputError);
}

// Every bundled system can be built, names its links uniquely, and copies at no more than its own rates.
TEST(Machine, EveryBundledSystemBuilds) {
  const ProfileLibrary library = ProfileLibrary::standard();
  std::size_t systems = 0;
  for (const ProfileEntry& entry : library.list()) {
    if (entry.kind != ProfileKind::system) continue;
    ++systems;
    SCOPED_TRACE(entry.name);
    const HardwareProfile profile = library.load_system(entry.name);
    ActivityGraph graph;
    const Machine machine(profile, graph);
    ASSERT_EQ(machine.gpu_count(), static_cast<std::size_t>(profile.gpu_count));
    std::vector<std::string> names;
    for (const Machine::NamedLink& link : machine.links()) names.push_back(link.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
    const Picos end = run(graph, {{machine.host_to_device(0), 1'000'000'000}})[0];
    EXPECT_GT(end, Picos::zero());
    if (profile.gpu.host_to_device_bandwidth) {
      EXPECT_GE(to_seconds(end), 1e9 / to_bytes_per_second(profile.gpu.host_to_device_bandwidth->value) * 0.999999);
    }
    for (std::size_t set = 0; set < machine.drive_sets().size(); ++set) {
      run(graph, {{machine.gpu_to_drive(0, set, DriveRoute::bounce), 1'000'000'000}});
    }
  }
  EXPECT_GT(systems, 20U);
}

}  // namespace
}  // namespace spillway::sim
