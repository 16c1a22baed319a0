// Offloading of captured steps, whose uses are inferred (traces/infer_uses.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "planners/offload/hybrid_search.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/offload_run.h"
#include "scenario/scenario_run.h"
#include "sim/replay/captured_step.h"
#include "sim/replay/order_plan.h"
#include "tests/traces/test_files.h"
#include "tests/traces/tiny_capture.h"
#include "traces/formats/spillway_json.h"

namespace spillway::scenario {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A scenario of a captured file on the machine it is from, with drives.
Scenario captured(const std::string& file, const std::string& offload) {
  return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "trace": ")" + file +
                            R"(", "hardware": {"profile": "h100-80gb-1gpu"}, "offload": {)" + offload + "}}",
                        "test", "");
}
const std::string ssdtrain = R"("technique": "ssdtrain", "drives": "samsung-990-pro-2tb", "drives_per_machine": 4,
                                "adaptive": false, "in_flight_bytes": 1000000000)";

ReplayOptions options() {
  ReplayOptions options;
  options.memory.capacity = Bytes(std::int64_t{80} << 30);
  options.memory.allocator = "ideal";
  return options;
}

HardwareProfile machine() {
  HardwareProfile hardware = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  DriveGroup group;
  group.name = "offload";
  group.drive = ProfileLibrary::standard().load_nvme("samsung-990-pro-2tb");
  group.count = 4;
  hardware.drives = {std::move(group)};
  assign_slots(hardware, true);
  return hardware;
}

OffloadSettings settings_of(Tier tier) {
  OffloadSettings settings;
  settings.tier = tier;
  settings.in_flight = Bytes(256 << 20);
  settings.ssdtrain.adaptive = false;
  return settings;
}

// Each work stands right behind its launch, and is the same work.
TEST(CapturedStep, HasWorksBehindTheirLaunches) {
  const Trace raw = TinyCapture{.operators = 6, .passes = 2}.make();
  const Trace step = captured_step(raw, "test");
  step.check_invariants();
  EXPECT_TRUE(ties_uses_to_memory(step));
  EXPECT_EQ(step.ops.size(), raw.ops.size());
  for (std::size_t i = 0; i < step.ops.size(); ++i)
    if (step.ops.launched_by[i] != OpId::none) {
      EXPECT_EQ(index_of(step.ops.launched_by[i]), i - 1);
    }
  const Trace again = captured_step(step, "test");
  EXPECT_EQ(digest_of_works(again), digest_of_works(step));
}

// A replay of the completed capture alone is that of the capture.
TEST(CapturedStep, ReplaysAsTheCaptureDoes) {
  const Trace raw = TinyCapture{.operators = 6, .passes = 2}.make();
  const Result before = replay(raw, machine(), options());
  const Result after = replay(captured_step(raw, "test"), machine(), options());
  EXPECT_EQ(before.step_time, after.step_time);
  EXPECT_EQ(before.memory.peak_allocated, after.memory.peak_allocated);
}

// Twelve operators of 64 MiB: in a chain without layers block k is away from behind operator k + 2 to before its
// node. Drives and host memory are fast enough for blocks of 50 ms kernels: half the blocks are gone at the peak.
TEST(CapturedOffload, LowersThePeakOfACaptureWithoutLayers) {
  const Trace step = captured_step(
      TinyCapture{.operators = 12, .kernel = microseconds(40'000), .call = microseconds(50'000)}.make(), "test");
  const Result keep = replay(step, machine(), options());
  for (const Tier tier : {Tier::drive, Tier::host}) {
    const OffloadOutcome outcome = run_ssdtrain(step, PlainReplayer(machine(), options()), settings_of(tier));
    EXPECT_EQ(outcome.moved.stored, outcome.moved.loaded + outcome.moved.forwarded);
    EXPECT_GE(outcome.moved.loaded, Bytes(6 * (64LL << 20)));
    EXPECT_LE(outcome.result.memory.peak_allocated + Bytes(6 * (64LL << 20)), keep.memory.peak_allocated);
    EXPECT_LE(to_seconds(outcome.result.step_time), to_seconds(keep.step_time) * 1.05);
  }
}

// Every pass keeps its last scope, the one whose backward comes next: 11 blocks of a pass may leave, one of them stays.
TEST(CapturedOffload, KeepsTheLastScopeOfEachPass) {
  const Trace step = captured_step(TinyCapture{.operators = 12, .passes = 3}.make(), "test");
  const OffloadOutcome outcome = run_ssdtrain(step, PlainReplayer(machine(), options()), settings_of(Tier::drive));
  EXPECT_EQ(outcome.moved.candidates, Bytes(3 * 11 * (64LL << 20)));
  EXPECT_EQ(outcome.scopes.size(), 33U);
  EXPECT_EQ(outcome.moved.kept, Bytes(3 * (64LL << 20)));
}

// Uses that are inferred don't say what an op needs to run again: the mix offloads but never recomputes.
TEST(CapturedOffload, MixNeverRecomputesOnInferredUses) {
  const Trace step = captured_step(
      TinyCapture{.operators = 12, .operators_per_layer = 3, .kernel = microseconds(20'000)}.make(), "test");
  HybridSettings settings;
  settings.budget = Bytes(8 * (64LL << 20));
  settings.runtime = settings_of(Tier::drive);
  const HybridOutcome outcome = plan_hybrid(step, PlainReplayer(machine(), options()), settings);
  EXPECT_TRUE(outcome.best.fits());
  EXPECT_GT(outcome.to_host + outcome.to_drives, Bytes(0));
  EXPECT_EQ(outcome.recomputed, Bytes(0));
  for (const HybridCase& one : outcome.baselines) EXPECT_THAT(one.name, ::testing::Not(HasSubstr("recomputation")));
}

TEST(CapturedOffload, LifetimesTakesTheInferredGaps) {
  const Trace step = captured_step(
      TinyCapture{.operators = 12, .kernel = microseconds(40'000), .call = microseconds(50'000)}.make(), "test");
  ReplayOptions small = options();
  small.memory.capacity = Bytes(8 * (64LL << 20));
  const OffloadOutcome outcome = run_lifetimes(step, PlainReplayer(machine(), small), settings_of(Tier::drive));
  EXPECT_TRUE(outcome.result.fits());
  EXPECT_GT(outcome.moved.stored, Bytes(0));
}

class CapturedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = test::temporary_path("tiny_capture.json");
    OutputFile out(path_);
    write_spillway_json(TinyCapture{.operators = 8}.make(), out);
    out.commit();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

// A scenario of a capture offloads, and says that it infers.
TEST_F(CapturedFile, ScenarioSaysWhatIsInferred) {
  const LoadedScenario loaded = load(captured(path_, ssdtrain));
  EXPECT_THAT(loaded.warnings, Contains(StartsWith("uses_inferred (7)")));
  const Result result = run(loaded);
  EXPECT_THAT(result.provenance, Contains(::testing::Field(&InputProvenance::name, "trace.uses")));
  ASSERT_TRUE(result.offload.has_value());
  EXPECT_GT(result.offload->stored, Bytes(0));
  EXPECT_THROW(load(captured(path_, R"("technique": "stream")")), InputError);  // a capture shows no weights
}

// A plan of a capture holds for the same capture in a later run.
TEST_F(CapturedFile, PlansAreFollowed) {
  LoadedScenario loaded = load(captured(path_, ssdtrain));
  OffloadOutcome outcome =
      run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), loaded.scenario.offload);
  outcome.plan.digest = digest_of_works(loaded.trace);
  Plan plan;
  plan.fates = outcome.plan;
  LoadedScenario other = load(captured(path_, R"("drives": "samsung-990-pro-2tb", "drives_per_machine": 4)"));
  apply_plan(other, plan);
  EXPECT_EQ(run(other).fingerprint, outcome.result.fingerprint);
}

// VGG-13 at a large batch on an H100 (a Kineto capture with memory): 28 GB are kept for the backward, more than half of
// it in blocks that drives of this rate can take.
TEST(CapturedOffload, RealStepOfVgg13) {
  const auto file = test::shared_file("traces/triosim/profiler_vgg13-iter41.json.gz");
  if (!file) GTEST_SKIP() << "no ../shared/data";
  const Result keep = run(load(captured(*file, R"("technique": "none")")));
  const LoadedScenario loaded = load(captured(*file, ssdtrain));
  EXPECT_TRUE(loaded.trace.is_inferred(Capability::uses));
  const Result result = run(loaded);
  ASSERT_TRUE(result.offload.has_value());
  EXPECT_GT(result.offload->candidates, Bytes(25'000'000'000));
  EXPECT_EQ(result.offload->stored, result.offload->loaded + result.offload->forwarded);
  EXPECT_LT(result.memory.peak_allocated, keep.memory.peak_allocated);
  EXPECT_GE(result.step_time, keep.step_time);
}

// A capture joined with its ExecutionTrace has uses and memory that don't know of each other: SSDTrain goes by the
// memory, what has to know the uses makes lives from them.
TEST(CapturedOffload, JoinedCaptureOfVgg13) {
  const auto file = test::shared_file("traces/triosim/profiler_vgg13-iter41.json.gz");
  if (!file) GTEST_SKIP() << "no ../shared/data";
  Scenario scenario =
      captured(*file, R"("technique": "ssdtrain", "drives": "samsung-990-pro-2tb", "drives_per_machine": 4,
                                         "least_elements": 1000000, "adaptive": false)");
  scenario.execution_trace = *test::shared_file("traces/triosim/graph_vgg13-iter41.json.gz");
  const LoadedScenario loaded = load(scenario);
  EXPECT_TRUE(loaded.trace.is_inferred(Capability::uses));
  EXPECT_FALSE(loaded.trace.is_inferred(Capability::memory));
  Scenario other = scenario;
  other.offload.technique = "lifetimes";
  const LoadedScenario by_uses = load(other);
  EXPECT_FALSE(by_uses.trace.is_inferred(Capability::uses));
  EXPECT_TRUE(by_uses.trace.is_inferred(Capability::memory));
  const Result result = run(loaded);
  ASSERT_TRUE(result.offload.has_value());
  EXPECT_GT(result.offload->stored, Bytes(0));
  EXPECT_EQ(result.offload->stored, result.offload->loaded + result.offload->forwarded);
}

// What is missing is named, with how to record it: an ExecutionTrace alone has no times.
TEST(CapturedOffload, ExecutionTraceAloneIsRefused) {
  const auto file = test::shared_file("traces/param-et_replay/resnet_et.json.gz");
  if (!file) GTEST_SKIP() << "no ../shared/data";
  try {
    load(captured(*file, ssdtrain));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("times"));
    EXPECT_THAT(error.what(), HasSubstr("torch.profiler"));
  }
}

}  // namespace
}  // namespace spillway::scenario
