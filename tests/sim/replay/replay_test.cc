#include "sim/replay/replay.h"
#include "sim/replay/fidelity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/input_error.h"
#include "traces/capture_fit.h"
#include "traces/formats/read.h"

namespace spillway::sim {
namespace {

constexpr Bytes mebibytes(std::int64_t count) { return Bytes(count << 20); }

HardwareProfile quiet_hardware() {
  HardwareProfile hardware;
  hardware.gpu.memory_bandwidth.value = rate_from_bytes_per_second(1e12);
  return hardware;
}

// One host thread launching kernels of the given lengths onto one stream, one microsecond a call.
Trace launches(const std::vector<std::pair<std::string, Picos>>& kernels) {
  Trace trace;
  const LaneId host = trace.lane({.kind = LaneKind::host_thread});
  const LaneId stream = trace.lane({.kind = LaneKind::stream, .device = 0});
  Picos now{};
  for (const auto& [name, duration] : kernels) {
    const OpId call = trace.append_op({.name = trace.strings.intern("cudaLaunchKernel"),
                                       .kind = OpKind::launch,
                                       .lane = host,
                                       .start = now,
                                       .duration = microseconds(1)});
    trace.append_op({.name = trace.strings.intern(name),
                     .kind = OpKind::kernel,
                     .lane = stream,
                     .duration = duration,
                     .launched_by = call});
    now += microseconds(1);
  }
  trace.set(Capability::times);
  return trace;
}

// Launched at 0 and 1 us, 1 us a call: k1 runs [1, 11), k2 [11, 31).
TEST(Replay, KernelsOfAStreamFollowEachOther) {
  const Trace trace = launches({{"gemm", microseconds(10)}, {"add", microseconds(20)}});
  const Result result = replay(trace, quiet_hardware(), {});
  EXPECT_EQ(result.op_start[1], microseconds(1));
  EXPECT_EQ(result.op_start[3], microseconds(11));
  EXPECT_EQ(result.replayed, microseconds(31));
  // Host 1 us, arithmetic 10 us, memory 20 us: the parts of the critical path add up to the whole.
  EXPECT_EQ(result.breakdown[static_cast<std::size_t>(Binding::compute)], microseconds(10));
  EXPECT_EQ(result.breakdown[static_cast<std::size_t>(Binding::hbm)], microseconds(20));
  EXPECT_EQ(result.breakdown[static_cast<std::size_t>(Binding::host)], microseconds(1));
}

// A call that a plan put behind the first of two host threads' calls has no recorded start, and runs where it stands.
TEST(Replay, ACallThatAPlanPutInRunsBehindTheOneBeforeIt) {
  Trace trace = launches({{"gemm", microseconds(10)}});
  const OpId first{0};
  const LaneId host = trace.ops.lane[index_of(first)];
  const OpId put_in = trace.append_op({.kind = OpKind::host_work, .lane = host, .duration = microseconds(50)});
  const OpId last =
      trace.append_op({.kind = OpKind::host_work, .lane = host, .start = microseconds(4), .duration = microseconds(1)});
  const LaneId other = trace.lane({.kind = LaneKind::host_thread, .number = 1});
  trace.append_op({.kind = OpKind::host_work, .lane = other, .start = microseconds(2), .duration = microseconds(1)});
  const Result result = replay(trace, quiet_hardware(), {});
  EXPECT_EQ(result.op_start[index_of(put_in)], result.op_end[index_of(first)]);
  EXPECT_GE(result.op_start[index_of(last)], result.op_end[index_of(put_in)]);
}

// A copy of 30 us from the host between kernels of 10 and 20 us, all behind 1 us of launch: 31 of 61 us idle. A copy
// within the GPU's memory, and a fill, keep it busy.
TEST(Replay, CopiesFromTheHostLeaveAGpuIdle) {
  Trace trace = launches({{"gemm", microseconds(10)}, {"Memcpy", microseconds(30)}, {"add", microseconds(20)}});
  const auto idle_with = [&trace](OpKind kind) {
    trace.ops.kind[3] = kind;
    const Result result = replay(trace, quiet_hardware(), {});
    EXPECT_EQ(result.replayed, microseconds(61));
    return result.bubble.value();
  };
  for (const OpKind kind : {OpKind::copy_host_to_device, OpKind::copy_device_to_host, OpKind::copy_peer})
    EXPECT_NEAR(idle_with(kind), 31.0 / 61, 1e-9) << to_string(kind);
  for (const OpKind kind : {OpKind::copy_device_to_device, OpKind::memset, OpKind::kernel})
    EXPECT_NEAR(idle_with(kind), 1.0 / 61, 1e-9) << to_string(kind);
}

// A capture of launches whose kernels nobody recorded: how idle the GPU was isn't known.
TEST(Replay, WithoutWorkOfAGpuItsIdleShareIsUnknown) {
  Trace trace;
  const LaneId host = trace.lane({.kind = LaneKind::host_thread});
  trace.append_op({.name = trace.strings.intern("cudaLaunchKernel"),
                   .kind = OpKind::launch,
                   .lane = host,
                   .duration = microseconds(1)});
  trace.set(Capability::times);
  const Result result = replay(trace, quiet_hardware(), {});
  EXPECT_GT(result.replayed, Picos(0));
  EXPECT_FALSE(result.bubble.has_value());
}

// Steps of one kernel each end at 11, 21, 71 and 91 us: periods of 10, 50 and 20 us.
TEST(Replay, StepTimeIsTheMedianPeriod) {
  Trace trace =
      launches({{"a", microseconds(10)}, {"b", microseconds(10)}, {"c", microseconds(50)}, {"d", microseconds(20)}});
  for (std::size_t i = 0; i < trace.ops.size(); ++i) trace.ops.step[i] = static_cast<std::uint16_t>(i / 2);
  for (int s = 0; s < 4; ++s) trace.steps.push_back({.name = trace.strings.intern("step " + std::to_string(s))});
  const Result result = replay(trace, quiet_hardware(), {});
  ASSERT_EQ(result.steps.size(), 4U);
  EXPECT_EQ(result.step_time, microseconds(20));
  trace.steps.resize(1);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) trace.ops.step[i] = 0;
  EXPECT_EQ(replay(trace, quiet_hardware(), {}).step_time, microseconds(91)) << "of one alone its span";
}

// 30 and 60 MiB in turn with 80 MiB and blocks from 20 MiB on kept whole: each request frees the other's segment and
// takes its own, in every step. 2 x (cudaMalloc 100 us + cudaFree 50 us), behind the work launched before.
TEST(Replay, DriverCallsOfTheAllocatorTakeTime) {
  Trace trace = launches({{"k1", microseconds(10)}, {"k2", microseconds(10)}, {"k3", microseconds(10)}});
  const auto event = [&trace](MemoryAction action, std::uint64_t address, std::int64_t bytes, std::uint32_t anchor) {
    MemoryEvent& added = trace.memory_events.emplace_back();
    added.action = action;
    added.address = Addr(address);
    added.bytes = mebibytes(bytes);
    added.anchor = OpId(anchor);
  };
  event(MemoryAction::allocate, 1, 30, 1);  // behind k1's launch
  event(MemoryAction::free_requested, 1, 30, 2);
  event(MemoryAction::allocate, 2, 60, 2);  // behind k2's
  event(MemoryAction::free_requested, 2, 60, 4);
  trace.set(Capability::memory);
  HardwareProfile hardware = quiet_hardware();
  hardware.gpu.malloc_cost.value = microseconds(100);
  hardware.gpu.free_cost.value = microseconds(50);
  ReplayOptions options;
  options.memory.settings = "max_split_size_mb:20";
  options.memory.capacity = mebibytes(80);
  const Result tight = replay(trace, hardware, options);
  EXPECT_FALSE(tight.memory.out_of_memory);
  EXPECT_EQ(tight.memory.driver_time, microseconds(300));
  EXPECT_EQ(tight.memory.first_driver_time, microseconds(250)) << "two mallocs, one free: nothing is cached at first";
  // k1 [1, 11), host held up [11, 161), call, k2 [162, 172), host [172, 322), call, k3 [323, 333).
  EXPECT_EQ(tight.op_start[3], microseconds(162));
  EXPECT_EQ(tight.op_start[5], microseconds(323));
  EXPECT_EQ(tight.replayed, microseconds(333));
  ASSERT_FALSE(tight.provenance.empty());
  EXPECT_EQ(tight.provenance.back().provenance, "assumed") << "the profile has no figures for virtual memory";
  options.memory.capacity = mebibytes(200);
  const Result roomy = replay(trace, hardware, options);
  EXPECT_EQ(roomy.memory.driver_time, Picos(0)) << "both segments stay cached";
  EXPECT_EQ(roomy.replayed, microseconds(31));
}

// Out of memory is explained: who held what, and what would have got by.
TEST(Replay, OutOfMemoryNamesOwnersAndAlternatives) {
  Trace trace = launches({{"k1", microseconds(10)}});
  const auto event = [&trace](MemoryAction action, std::uint64_t address, std::int64_t bytes) {
    MemoryEvent& added = trace.memory_events.emplace_back();
    added.action = action;
    added.address = Addr(address);
    added.bytes = mebibytes(bytes);
    added.anchor = OpId(0);
  };
  trace.ops.phase[0] = Phase::forward;
  for (std::uint64_t i = 0; i < 8; ++i) event(MemoryAction::allocate, 1 + i, 11);  // 12 MiB segments
  for (std::uint64_t i = 0; i < 8; i += 2) event(MemoryAction::free_requested, 1 + i, 11);
  event(MemoryAction::allocate, 100, 55);
  trace.set(Capability::memory);
  ReplayOptions options;
  options.memory.capacity = mebibytes(100);
  const Result result = replay(trace, quiet_hardware(), options);
  ASSERT_TRUE(result.memory.out_of_memory);
  EXPECT_NE(result.memory.explanation.find("resident: 0.05 GiB allocated in forward"), std::string::npos)
      << result.memory.explanation;
  EXPECT_NE(result.memory.explanation.find("without any fragmentation 0.10 GiB would do"), std::string::npos)
      << result.memory.explanation;
  options.memory.capacity = mebibytes(90);
  const Result worse = replay(trace, quiet_hardware(), options);
  EXPECT_NE(worse.memory.explanation.find("not fit without any fragmentation either"), std::string::npos)
      << worse.memory.explanation;
}

// A limit that is never met changes no figure; one that is met does.
TEST(Replay, OneRunStandsForALimitThatIsNotMet) {
  Trace trace = launches({{"k1", microseconds(10)}});
  for (const MemoryAction action : {MemoryAction::allocate, MemoryAction::free_requested}) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      MemoryEvent& added = trace.memory_events.emplace_back();
      added.action = action;
      added.address = Addr(1 + i);
      added.bytes = mebibytes(static_cast<std::int64_t>(20 + 2 * i));
      added.anchor = OpId(0);
    }
  }
  trace.set(Capability::memory);
  ReplayOptions options;
  const Result unlimited = replay(trace, quiet_hardware(), options);
  EXPECT_EQ(unlimited.memory.peak_reserved, mebibytes(66));
  for (const std::int64_t capacity : {66, 100}) {
    options.memory.capacity = mebibytes(capacity);
    const Result limited = replay(trace, quiet_hardware(), options);
    EXPECT_FALSE(limited.memory.out_of_memory);
    EXPECT_EQ(limited.memory.peak_reserved, unlimited.memory.peak_reserved);
    EXPECT_EQ(limited.memory.first_driver_time, unlimited.memory.first_driver_time);
    EXPECT_EQ(limited.memory.driver_time, unlimited.memory.driver_time);
    EXPECT_EQ(limited.fingerprint, unlimited.fingerprint);
  }
  options.memory.capacity = mebibytes(65);
  EXPECT_TRUE(replay(trace, quiet_hardware(), options).memory.out_of_memory);
}

// A compute-bound step on a GPU k times faster: host call + sum of durations / k.
TEST(Replay, AFasterGpuDividesWhatItComputes) {
  const Trace trace = launches({{"gemm", microseconds(100)}, {"gemm", microseconds(300)}});
  for (const int k : {1, 2, 4, 5}) {
    ReplayOptions options;
    options.speed.compute = k;
    EXPECT_EQ(replay(trace, quiet_hardware(), options).replayed, microseconds(1) + microseconds(400) / std::int64_t{k});
  }
}

// Half the memory bandwidth doubles memory-bound kernels and leaves the others.
TEST(Replay, HalfTheBandwidthDoublesMemoryBoundKernels) {
  const Trace trace = launches({{"gemm", microseconds(100)}, {"elementwise", microseconds(300)}});
  ReplayOptions options;
  options.speed.memory = 0.5;
  EXPECT_EQ(replay(trace, quiet_hardware(), options).replayed, microseconds(1 + 100 + 600));
}

// Ten launches of 1 us and kernels of 1 ns are bound by the host; a host twice as fast halves the step.
TEST(Replay, AFasterHostHelpsALaunchBoundStep) {
  std::vector<std::pair<std::string, Picos>> tiny(10, {"add", nanoseconds(1)});
  const Trace trace = launches(tiny);
  EXPECT_EQ(replay(trace, quiet_hardware(), {}).replayed, microseconds(10) + nanoseconds(1));
  ReplayOptions options;
  options.speed.host = 2;
  EXPECT_EQ(replay(trace, quiet_hardware(), options).replayed, microseconds(5) + nanoseconds(1));
}

// A call that waits for its copy lasts as long as the copy and the fitted overhead together: 2 + 27 us, so the host's
// next call starts at 29 us, whenever the capture says the copy itself began.
TEST(Replay, ABlockingCopyHoldsTheHostForItsOverhead) {
  for (const Picos recorded_copy_start : {microseconds(5), microseconds(18), microseconds(25)}) {
    Trace trace;
    const LaneId host = trace.lane({.kind = LaneKind::host_thread});
    const LaneId stream = trace.lane({.kind = LaneKind::stream, .device = 0});
    const OpId call =
        trace.append_op({.kind = OpKind::launch, .lane = host, .start = {}, .duration = microseconds(29)});
    trace.append_op({.kind = OpKind::copy_device_to_host,
                     .lane = stream,
                     .flags = static_cast<std::uint8_t>(OpFlag::pageable),
                     .start = recorded_copy_start,
                     .duration = microseconds(2),
                     .launched_by = call});
    trace.append_op({.kind = OpKind::host_work, .lane = host, .start = microseconds(29), .duration = microseconds(1)});
    trace.set(Capability::times);
    fit_capture(trace);
    EXPECT_EQ(trace.capture_fit.blocking_copy_overhead, microseconds(27));
    EXPECT_EQ(replay(trace, quiet_hardware(), {}).op_start[2], microseconds(29));
  }
}

// Two blocks of 1 MiB and 10 MiB, the first freed before the second: allocated peaks at 10 MiB. The caching
// allocator keeps the first one's 2 MiB segment beside the second's 10 MiB; what it reserves never falls.
TEST(Replay, MemoryCurveShowsWhatIsAllocatedAndWhatIsReserved) {
  Trace trace = launches({{"gemm", microseconds(10)}, {"gemm", microseconds(10)}, {"gemm", microseconds(10)}});
  const auto event = [&](std::uint32_t op, MemoryAction action, std::uint64_t address, Bytes bytes) {
    trace.memory_events.push_back(
        {.time = trace.ops.start[op], .address = Addr{address}, .bytes = bytes, .anchor = OpId(op), .action = action});
  };
  event(0, MemoryAction::allocate, 0x1000, mebibytes(1));
  event(2, MemoryAction::free_completed, 0x1000, mebibytes(1));
  event(4, MemoryAction::allocate, 0x2000, mebibytes(10));
  const MemoryResult memory = replay(trace, quiet_hardware(), {}).memory;
  EXPECT_FALSE(memory.on_host);
  EXPECT_EQ(memory.peak_allocated, mebibytes(10));
  EXPECT_EQ(memory.peak_reserved, mebibytes(12));
  EXPECT_EQ(memory.peak_time, microseconds(2));
  ASSERT_EQ(memory.timeline.size(), 3U);
  EXPECT_EQ(memory.timeline[0].allocated, mebibytes(1));
  EXPECT_EQ(memory.timeline[0].reserved, mebibytes(2));
  EXPECT_EQ(memory.timeline[1].allocated, Bytes(0));
  EXPECT_EQ(memory.timeline[1].reserved, mebibytes(2));
  EXPECT_EQ(memory.timeline[2].reserved, mebibytes(12));

  for (MemoryEvent& e : trace.memory_events) e.device = -1;
  const MemoryResult host = replay(trace, quiet_hardware(), {}).memory;
  EXPECT_TRUE(host.on_host);
  EXPECT_EQ(host.peak_allocated, mebibytes(10));
}

TEST(Replay, SaysWhichOpsWaitForEachOther) {
  Trace trace = launches({{"a", microseconds(1)}, {"b", microseconds(1)}});
  trace.edges.push_back({.from = OpId(3), .to = OpId(1)});  // b before a, against the stream's order
  EXPECT_THROW(replay(trace, quiet_hardware(), {}), InputError);
}

TEST(Replay, RefusesATraceWithoutTimes) { EXPECT_THROW(replay(Trace{}, quiet_hardware(), {}), InputError); }

std::string shared(const std::string& file) {
  const char* given = std::getenv("SPILLWAY_SHARED_DATA");
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  const std::filesystem::path folder =
      given != nullptr ? given : std::filesystem::path(root == nullptr ? "." : root) / ".." / "shared" / "data";
  return (folder / "traces" / file).string();
}

class CapturedStep : public testing::TestWithParam<const char*> {};

// |replayed span / recorded span - 1| <= 1 % for every whole step of a real capture.
TEST_P(CapturedStep, ReplaysWithinOnePercent) {
  const std::string file = shared(GetParam());
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const Trace trace = read_trace(file);
  const Result result = replay(trace, quiet_hardware(), {});
  ASSERT_EQ(result.steps.size(), trace.steps.size());
  for (const StepResult& step : result.steps) {
    const double error = to_seconds(step.span()) / to_seconds(step.recorded_span) - 1;
    EXPECT_LE(std::abs(error), 0.01) << step.name;
  }
}

// Once imported, recorded start times of launched device work play no part: without them the result is the same.
TEST_P(CapturedStep, IgnoresRecordedStartsOfLaunchedWork) {
  const std::string file = shared(GetParam());
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  Trace trace = read_trace(file);
  const std::uint64_t with = replay(trace, quiet_hardware(), {}).fingerprint;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (is_device_work(trace.ops.kind[i]) && trace.ops.launched_by[i] != OpId::none) trace.ops.start[i] = unknown_time;
  EXPECT_EQ(replay(trace, quiet_hardware(), {}).fingerprint, with);
}

// The order of simultaneous events moves no start and no end.
TEST_P(CapturedStep, DoesNotDependOnTheOrderOfTies) {
  const std::string file = shared(GetParam());
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const Trace trace = read_trace(file);
  const std::uint64_t fifo = replay(trace, quiet_hardware(), {}).fingerprint;
  for (const char* order : {"reverse", "shuffle:1", "shuffle:20261121"}) {
    ReplayOptions options;
    options.tie_order = TieOrder::parse(order);
    EXPECT_EQ(replay(trace, quiet_hardware(), options).fingerprint, fifo) << order;
  }
}

INSTANTIATE_TEST_SUITE_P(Real, CapturedStep,
                         testing::Values("hta/df_index_resolver.json.gz", "hta/ns_resolution_rank-0.json.gz",
                                         "hta/critical_path_cuda_event_sync.json.gz",
                                         "kineto-tb_plugin/resnet50_num_workers_0.1623143089861.pt.trace.json.gz",
                                         "tracelens/resnet_act_checkpoint.json.gz"));

// Captures whose time nothing explains for the most part: missing kernels, CUDA's own start, late work. Kept, it
// replays.
TEST(CapturedSteps, KeepWhatNothingExplains) {
  for (const char* name : {"hta/critical_path_alexnet.json.gz", "hta/benchmark_simple_add_trace.json.gz",
                           "hta/cupti_profiler_counters.json.gz", "param-et_replay/resnet_kineto.json.gz"}) {
    const std::string file = shared(name);
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
    Trace trace = read_trace(file);
    const Result result = replay(trace, quiet_hardware(), {});
    const auto found = fidelity_of(trace, result);
    ASSERT_TRUE(found) << name;
    EXPECT_LE(std::abs(found->error), 0.01) << name;
    EXPECT_GT(found->unexplained_share, 0.03) << name;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (is_device_work(trace.ops.kind[i]) && trace.ops.launched_by[i] != OpId::none)
        trace.ops.start[i] = unknown_time;
    EXPECT_EQ(replay(trace, quiet_hardware(), {}).fingerprint, result.fingerprint) << name << ": lags, not times";
  }
}

// A recommendation model on four streams whose event waits the capture does not name: five of its six steps replay
// within 1 %, the worst within 1.5 %. Pinned so that it can't get worse unseen.
TEST(CapturedSteps, FourStreamsWithoutEventRecords) {
  const std::string file = shared("hta/trace_diff_test_V100_ws2_rank1.json.gz");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  const Result result = replay(read_trace(file), quiet_hardware(), {});
  ASSERT_EQ(result.steps.size(), 6U);
  int within = 0;
  for (const StepResult& step : result.steps) {
    const double error = std::abs(to_seconds(step.span()) / to_seconds(step.recorded_span) - 1);
    within += error <= 0.01 ? 1 : 0;
    EXPECT_LE(error, 0.015) << step.name;
  }
  EXPECT_GE(within, 5);
}

}  // namespace
}  // namespace spillway::sim
