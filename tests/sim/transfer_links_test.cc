// Transfers timed by their bytes, and what they share with kernels and with each other.
#include "sim/replay/transfer_links.h"

#include <gtest/gtest.h>

#include <string>

#include "hwprofiles/profile_library.h"
#include "sim/replay/replay.h"
#include "traces/base/input_error.h"

namespace spillway {
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

  LaneId lane(LaneKind kind, std::int16_t device) {
    return trace_.lane({.kind = kind, .device = device, .number = ++lanes_, .name = trace_.strings.intern("lane")});
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

}  // namespace
}  // namespace spillway
