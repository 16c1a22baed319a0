// Transfers timed by their bytes, and what they share with kernels and with each other.
#include "sim/replay/transfer_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "sim/replay/host_memory.h"
#include "sim/replay/replay.h"

namespace spillway::sim {
namespace {

HardwareProfile machine() {
  HardwareProfile hardware = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  hardware.gpu.host_to_device_bandwidth =
      hardware.gpu.device_to_host_bandwidth = {.value = rate_from_bytes_per_second(5e10)};
  return hardware;
}

class Works {
 public:
  Works() { trace_.set(Capability::times); }

  LaneId lane(LaneKind kind, std::int16_t device, std::uint16_t rank = 0) {
    return trace_.lane(
        {.kind = kind, .rank = rank, .device = device, .number = ++lanes_, .name = trace_.strings.intern("lane")});
  }
  OpId kernel(LaneId lane, double seconds, std::int64_t bytes, std::int64_t flops = 0) {
    return trace_.append_op({.name = trace_.strings.intern("kernel"),
                             .kind = OpKind::kernel,
                             .lane = lane,
                             .duration = from_seconds(seconds),
                             .bytes = Bytes(bytes),
                             .flops = Flops(flops)});
  }
  OpId transfer(LaneId lane, OpKind kind, std::int64_t bytes) {
    return trace_.append_op({.name = trace_.strings.intern("transfer"),
                             .kind = kind,
                             .lane = lane,
                             .flags = static_cast<std::uint8_t>(OpFlag::by_bytes),
                             .duration = Picos{},
                             .bytes = Bytes(bytes)});
  }
  [[nodiscard]] Result run(const HardwareProfile& hardware, std::int64_t gpus_alike = 1) const {
    ReplayOptions options;
    options.gpus_alike = gpus_alike;
    return replay(trace_, hardware, options);
  }
  Trace& trace() { return trace_; }

 private:
  Trace trace_;
  std::int64_t lanes_ = 0;
};

double seconds(const Result& result, OpId op) {
  return to_seconds(result.op_end[index_of(op)] - result.op_start[index_of(op)]);
}

TEST(TransferLinks, ATransferTakesWhatItsLinksNeed) {
  const HardwareProfile hardware = machine();
  Works works;
  const OpId out = works.transfer(works.lane(LaneKind::stream, 0), OpKind::copy_device_to_host, 10'000'000'000);
  const double rate = to_bytes_per_second(hardware.gpu.device_to_host_bandwidth->value);
  EXPECT_NEAR(seconds(works.run(hardware), out), 1e10 / rate, 1e-6);
}

// Between drives and host memory nothing crosses the GPU's link.
TEST(TransferLinks, DrivesAndHostMemoryLeaveTheGpuAlone) {
  HardwareProfile hardware = machine();
  DriveGroup group;
  group.name = "scratch";
  group.drive = ProfileLibrary::standard().load_nvme("solidigm-d7-ps1010-7.68tb");
  hardware.drives = {group};
  assign_slots(hardware, true);
  Works works;
  const OpId read = works.transfer(works.lane(LaneKind::storage, -1), OpKind::storage_read, 14'500'000'000);
  const Result result = works.run(hardware);
  EXPECT_NEAR(seconds(result, read), 14.5e9 / to_bytes_per_second(group.drive.read_bandwidth->value), 1e-3);
  for (const LinkResult& link : result.links) EXPECT_EQ(link.name.find("gpu0"), std::string::npos) << link.name;
  ASSERT_EQ(result.drives.size(), 1U);
  EXPECT_EQ(result.drives.front().read.count(), 14'500'000'000);
  EXPECT_EQ(result.drives.front().written.count(), 0);
}

TEST(TransferLinks, LanesThatMixDirectionsAreRefused) {
  Works mixed;
  const LaneId lane = mixed.lane(LaneKind::stream, 0);
  mixed.transfer(lane, OpKind::copy_device_to_host, 1000);
  mixed.transfer(lane, OpKind::copy_host_to_device, 1000);
  EXPECT_THROW(mixed.run(machine()), InputError);
  Works kernel;
  kernel.transfer(kernel.lane(LaneKind::stream, 0), OpKind::kernel, 1000);
  EXPECT_THROW(kernel.run(machine()), InputError);
}

// Kernels at 0.8 of the bandwidth beside a copy at R: with that share for both together the kernel's bytes move at
// 0.8 C - R while the copy lasts. Without a share, and for kernels bound by arithmetic, nothing changes.
TEST(TransferLinks, CopiesSlowMemoryBoundKernelsWhereTheProfileSaysSo) {
  HardwareProfile hardware = machine();
  hardware.gpu.hbm_contention_factor.value = 1;
  const double capacity = to_bytes_per_second(hardware.gpu.memory_bandwidth.value);
  const double copy = to_bytes_per_second(hardware.gpu.host_to_device_bandwidth->value);
  const auto bytes = static_cast<std::int64_t>(0.8 * capacity);  // a second's
  const auto run = [&](const HardwareProfile& on, std::int64_t flops) {
    Works works;
    const OpId kernel = works.kernel(works.lane(LaneKind::stream, 0), 1, bytes, flops);
    works.transfer(works.lane(LaneKind::stream, 0), OpKind::copy_host_to_device, static_cast<std::int64_t>(2 * copy));
    return seconds(works.run(on), kernel);
  };
  EXPECT_NEAR(run(hardware, 0), 1, 1e-9);
  hardware.gpu.shared_hbm_fraction = {.value = 0.8};
  EXPECT_NEAR(run(hardware, 0), 0.8 * capacity / (0.8 * capacity - copy), 1e-4);
  EXPECT_NEAR(run(hardware, std::int64_t{1} << 60), 1, 1e-9);
  hardware.gpu.shared_hbm_fraction = {.value = 1};
  EXPECT_NEAR(run(hardware, 0), 1, 1e-4) << "both fit in";
  hardware.gpu.shared_hbm_fraction = {.value = 0.4};  // a kernel faster than that takes all there is when alone
  EXPECT_NEAR(run(hardware, 0), 0.4 * capacity / (0.4 * capacity - copy), 1e-3);
}

// Twenty drives each on their own: the one that is written begins the step with a full cache, whichever it is.
TEST(TransferLinks, TheRanksOwnDriveSetBeginsFull) {
  HardwareProfile hardware = machine();
  DriveGroup group;
  group.name = "scratch";
  group.drive = ProfileLibrary::standard().load_nvme("samsung-980-pro-1tb");
  group.count = 20;
  group.raid0 = false;
  hardware.drives = {group};
  assign_slots(hardware, true);
  ASSERT_EQ(drive_set_names(hardware).size(), 20U);
  EXPECT_EQ(drive_set_names(hardware)[17], "scratch.17");
  Works works;
  const LaneId stream = works.lane(LaneKind::stream, 0);
  works.kernel(stream, 0.001, 1000);
  const OpId write = works.transfer(works.lane(LaneKind::storage, 0), OpKind::storage_write, 2'000'000'000);
  PlannedTrace planned;
  planned.trace = works.trace();
  planned.drives = "scratch.17";
  const Result result = replay(planned, hardware, {});
  ASSERT_EQ(result.drives.size(), 1U);
  EXPECT_EQ(result.drives.front().set, "scratch.17");
  const double steady = to_bytes_per_second(group.drive.steady_write_bandwidth->value);
  EXPECT_NEAR(seconds(result, write), 2e9 / steady, 0.05 * 2e9 / steady);
}

HardwareProfile with_sets(std::int64_t sets) {
  HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-h100");
  DriveGroup group;
  group.name = "scratch";
  group.drive = ProfileLibrary::standard().load_nvme("solidigm-d7-ps1010-7.68tb");
  group.count = sets;
  group.raid0 = sets == 1;
  hardware.drives = {group};
  assign_slots(hardware, true);
  return hardware;
}

// Stages write different amounts: a machine's set takes the sum of those on it, each as often as it has GPUs there. An
// independent sum GPU by GPU says so, on one machine and several, with one set and one for each GPU.
TEST(TransferLinks, ADriveSetTakesTheSumOfItsStages) {
  for (const auto& [stages, gpus] : {std::pair<std::int64_t, std::int64_t>{4, 8},
                                     {8, 8},
                                     {2, 8},
                                     {4, 16},
                                     {16, 16},
                                     {4, 32},
                                     {4, 64},
                                     {2, 24},
                                     {6, 18}})
    for (const std::int64_t sets : {1, 2, 8}) {
      const HardwareProfile hardware = with_sets(sets);
      Works works;
      std::vector<std::int64_t> writes, reads;
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        writes.push_back(stage * 300'000'000);  // the first writes nothing
        reads.push_back(stage * 100'000'000);
        for (const bool inbound : {false, true}) {
          if (stage == 0) continue;
          const LaneId lane = works.lane(LaneKind::storage, 0, static_cast<std::uint16_t>(stage));
          for (int piece = 0; piece < 2; ++piece)
            works.transfer(lane, inbound ? OpKind::storage_read : OpKind::storage_write,
                           (inbound ? reads : writes).back() / 2);
        }
      }
      works.trace().rank_count = static_cast<std::uint16_t>(stages);
      const Result result = works.run(hardware, gpus);
      std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::int64_t, std::int64_t>> wanted;  // machine, set
      for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
        auto& [written, read] = wanted[{gpu / 8, gpu % 8 % sets}];
        written += writes[static_cast<std::size_t>(gpu / (gpus / stages))];
        read += reads[static_cast<std::size_t>(gpu / (gpus / stages))];
      }
      std::set<std::pair<std::int64_t, std::int64_t>> sums, found;
      for (const auto& [where, sum] : wanted) sums.insert(sum);
      for (const DriveTraffic& drive : result.drives) {
        found.insert({drive.written.count(), drive.read.count()});
        EXPECT_TRUE(sums.contains({drive.written.count(), drive.read.count()})) << drive.name << " of " << gpus;
        std::int64_t written = 0, sharing = 0;
        for (const DriveSharer& sharer : drive.sharers) {
          EXPECT_EQ(sharer.written.count(), writes[sharer.rank]);
          written += sharer.written.count() * sharer.gpus;
          sharing += sharer.gpus;
        }
        EXPECT_EQ(written, drive.written.count());
        EXPECT_EQ(sharing, drive.gpus);
      }
      EXPECT_TRUE(found.contains(*sums.rbegin())) << "the busiest set of all: " << stages << " on " << gpus;
      // What the links of the machines carried is what their drives were written.
      std::int64_t carried = 0, charged = 0;
      for (const LinkResult& link : result.links)
        if (link.name.ends_with("scratch write")) carried = std::max(carried, link.bytes.count());
      for (const DriveTraffic& drive : result.drives) charged = std::max(charged, drive.written.count());
      if (const std::int64_t each = gpus / stages; sets == 1 && (8 % each == 0 || each % 8 == 0)) {
        EXPECT_EQ(carried, charged) << stages << " on " << gpus;
      }
    }
}

// Host memory is the sum over the GPUs of a machine, whatever stages they belong to, of what is held at once.
TEST(TransferLinks, HostMemoryIsThatOfTheStagesOnAMachine) {
  Works works;
  std::vector<Picos> times;
  const auto hold = [&](LaneId lane, MemoryAction action, std::int64_t bytes, std::int64_t at) {
    works.trace().memory_events.push_back({.bytes = Bytes(bytes), .action = action, .device = -1, .stream = lane});
    times.push_back(microseconds(at));
  };
  for (std::uint16_t rank = 0; rank < 4; ++rank) {
    const LaneId lane = works.lane(LaneKind::stream, 0, rank);
    works.transfer(lane, OpKind::copy_device_to_host, 1000);
    hold(lane, MemoryAction::allocate, 100 * (rank + 1), 10);
    hold(lane, MemoryAction::free_requested, 100 * (rank + 1), rank < 2 ? 20 : 40);
    hold(lane, MemoryAction::allocate, 1000, 30);
  }
  works.trace().rank_count = 4;
  const auto peak = [&](std::int64_t gpus) {
    return host_memory(works.trace(), nullptr, times, {}, {}, nullptr, HostProfile(), RankPlaces(4, gpus, 8))
        ->peak.count();
  };
  EXPECT_EQ(peak(8), 2 * (300 + 400) + 8 * 1000);
  EXPECT_EQ(peak(16), 4 * (300 + 400) + 8 * 1000) << "two machines, the last two stages on one";
  EXPECT_EQ(peak(64), 8 * (400 + 1000)) << "two machines for each";
}

// The same step, its stages on one machine: they wait for each other as much as they write, no more.
TEST(TransferLinks, StagesShareTheLinksOfTheirMachine) {
  const HardwareProfile hardware = with_sets(1);
  const auto run = [&](const std::vector<std::int64_t>& bytes) {
    Works works;
    std::vector<OpId> writes;
    for (std::size_t stage = 0; stage < bytes.size(); ++stage)
      writes.push_back(works.transfer(works.lane(LaneKind::storage, 0, static_cast<std::uint16_t>(stage)),
                                      OpKind::storage_write, bytes[stage]));
    works.trace().rank_count = static_cast<std::uint16_t>(bytes.size());
    return seconds(works.run(hardware, 8), writes.back());
  };
  const double all = run({4'000'000'000, 4'000'000'000, 4'000'000'000, 4'000'000'000});
  EXPECT_NEAR(run({1'000'000, 1'000'000, 1'000'000, 4'000'000'000}), all / 4, 0.01 * all) << "two GPUs of eight write";
  EXPECT_NEAR(run({4'000'000'000, 1'000'000, 1'000'000, 4'000'000'000}), all / 2, 0.01 * all);
}

}  // namespace
}  // namespace spillway::sim
