// Steps whose optimizer runs on the CPU, replayed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/input_error.h"
#include "planners/offload/offload_run.h"
#include "scenario/scenario_run.h"
#include "studies/offload/offload_traffic.h"

namespace spillway::studies {
namespace {

LoadedScenario gpt2(const std::string& model = "", const std::string& more = "",
                    const std::string& hardware = "h100-80gb-1gpu") {
  const std::string text = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-medium", "sequence": 1024, "micro_batch": 8)" +
                           model + R"(}, "hardware": {"profile": ")" + hardware + R"(")" + more + "}";
  return load(parse_scenario(text, "test", ""));
}
const std::string on_cpu = R"(, "optimizer_device": "cpu")";
const std::string drives = R"(}, "offload": {"drives": "samsung-990-pro-2tb", "drives_per_machine": 4})";

struct Span {
  Picos begin = Picos::max(), end{};
};
Span span_of(const Trace& trace, const Result& result, std::string_view name) {
  Span span;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.strings.text(trace.ops.name[i]) != name) continue;
    span.begin = std::min(span.begin, result.op_start[i]);
    span.end = std::max(span.end, result.op_end[i]);
  }
  return span;
}
Picos end_of(const Trace& trace, const Result& result, Phase phase) {
  Picos end{};
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel && trace.ops.phase[i] == phase) end = std::max(end, result.op_end[i]);
  return end;
}

// The GPU's peak falls by at least the 12 bytes of state a parameter, and host memory takes them; the step is longer.
TEST(HostOptimizerRun, MemoryMovesToTheHost) {
  const LoadedScenario gpu = gpt2("", "}"), cpu = gpt2(on_cpu, "}");
  const Result before = run(gpu), after = run(cpu);
  const auto parameters = static_cast<std::int64_t>(parameter_counts(find_model("gpt2-medium")).total());
  EXPECT_GE((before.memory.peak_allocated - after.memory.peak_allocated).count(), 12 * parameters);
  EXPECT_FALSE(before.host_memory.known);
  ASSERT_TRUE(after.host_memory.known);
  EXPECT_GE(after.host_memory.peak.count(), 14 * parameters);
  EXPECT_LE(after.host_memory.peak.count(), 15 * parameters);
  EXPECT_TRUE(after.fits());
  EXPECT_GT(after.step_time, before.step_time);
}

// Gradients leave under the backward; Adam begins when the last is out, weights follow it, the last of them ends the
// step.
TEST(HostOptimizerRun, PartsFollowEachOther) {
  const LoadedScenario cpu = gpt2(on_cpu, "}");
  const Result result = run(cpu);
  const Span gradients = span_of(cpu.trace, result, "gradients_to_host"), adam = span_of(cpu.trace, result, "cpu_adam"),
             weights = span_of(cpu.trace, result, "weights_to_device");
  const Picos backward = end_of(cpu.trace, result, Phase::backward);
  EXPECT_LT(gradients.begin, backward);
  EXPECT_GE(gradients.end, backward);
  EXPECT_GE(adam.begin, gradients.end);
  EXPECT_LT(weights.begin, adam.end) << "a layer's weights go back while the next is updated";
  EXPECT_EQ(weights.end, result.steps.front().end);
}

// ZeRO-Offload, section 5.2: the delayed update hides Adam behind the step's forward and backward; what is longer of
// the two remains, and the weights' way back.
TEST(HostOptimizerRun, DelayedUpdateHidesAdam) {
  const LoadedScenario cpu = gpt2(on_cpu, "}"), delayed = gpt2(on_cpu + R"(, "delayed_update": true)", "}");
  const Result now = run(cpu), late = run(delayed);
  EXPECT_LT(late.step_time, now.step_time);
  const Span adam = span_of(delayed.trace, late, "cpu_adam"),
             weights = span_of(delayed.trace, late, "weights_to_device");
  EXPECT_EQ(adam.begin, Picos(0));
  EXPECT_GE(weights.begin, std::max(adam.end, end_of(delayed.trace, late, Phase::backward)));
  const Picos busy = adam.end - adam.begin;
  EXPECT_GE(late.step_time, busy + (weights.end - weights.begin));
}

TEST(HostOptimizerRun, AHostTooSmallIsANo) {
  const LoadedScenario cpu = gpt2(on_cpu, R"(, "set": {"host.dram": "4 GiB"}})");
  const Result result = run(cpu);
  EXPECT_EQ(result.host_memory.verdict(), Verdict::does_not_fit);
  EXPECT_EQ(result.verdict(), Verdict::does_not_fit);
}

// All GPUs of a machine hold their shares there.
TEST(HostOptimizerRun, GpusOfAMachineShareItsMemory) {
  const LoadedScenario two = gpt2(on_cpu + R"(, "data_parallel": 8, "zero_stage": 2)", "}", "dgx-h100");
  const Result result = run(two);
  const auto parameters = static_cast<double>(parameter_counts(find_model("gpt2-medium")).total());
  EXPECT_GE(static_cast<double>(result.host_memory.peak.count()), 14 * parameters);
  EXPECT_LE(static_cast<double>(result.host_memory.peak.count()), 15 * parameters);
}

// 16 bytes a parameter each way, and a life.
TEST(HostOptimizerRun, DrivesAreWrittenAndWorn) {
  const LoadedScenario loaded = gpt2(R"(, "optimizer_device": "drives")", drives);
  const ScenarioRun ran = run_traced(loaded);
  const std::int64_t parameters = parameter_counts(find_model("gpt2-medium")).total();
  ASSERT_EQ(ran.result.drives.size(), 1U);
  const DriveTraffic& set = ran.result.drives.front();
  EXPECT_EQ(set.written.count(), 16 * parameters);
  EXPECT_EQ(set.read.count(), 16 * parameters);
  ASSERT_TRUE(set.life.has_value());
  EXPECT_GT(set.life->years, 0);
  EXPECT_GT(ran.result.step_time, run(gpt2(on_cpu, "}")).step_time);
  EXPECT_LT(ran.result.host_memory.peak, run(gpt2(on_cpu, "}")).host_memory.peak);

  const OffloadTraffic traffic = offload_traffic(ran.trace(loaded), ran.result);
  EXPECT_EQ(traffic.load.written().count(), 16 * parameters);
  EXPECT_EQ(traffic.load.read().count(), 16 * parameters);
  ASSERT_EQ(traffic.causes.size(), 3U);
  EXPECT_EQ(traffic.causes[0].name, "states_from_drives in the optimizer");
}

TEST(HostOptimizerRun, NoDrivesNoStateOnThem) {
  EXPECT_THROW(gpt2(R"(, "optimizer_device": "drives")", "}", "h100-sxm5-80gb"), InputError);
}

// Weights on the host as well: no weight is on the GPU before the step, and slower PCIe is slower.
TEST(HostOptimizerRun, WeightsAreStreamed) {
  const std::string everything = on_cpu + R"(, "zero_stage": 3, "weight_device": "cpu")";
  const LoadedScenario streamed = gpt2(everything, "}");
  const Result result = run(streamed), resident = run(gpt2(on_cpu, "}"));
  EXPECT_LT(result.memory.peak_allocated, resident.memory.peak_allocated);
  for (std::size_t i = 0; i < streamed.trace.ops.size(); ++i) {
    if (streamed.trace.strings.text(streamed.trace.ops.name[i]) != "fetch_weights") continue;
    for (const Edge& edge : streamed.trace.edges)
      if (edge.from == OpId(static_cast<std::uint32_t>(i)) &&
          streamed.trace.ops.kind[index_of(edge.to)] == OpKind::kernel) {
        EXPECT_LE(result.op_end[i], result.op_start[index_of(edge.to)]);
      }
  }
  const Result slow = run(gpt2(everything, R"(, "set": {"gpu.host_to_device_bandwidth": "10 GB/s",
    "gpu.device_to_host_bandwidth": "10 GB/s"}})"));
  EXPECT_GT(slow.step_time, result.step_time);
}

// Activations go to drives beside gradients and weights on PCIe: both planners' transfers run.
TEST(HostOptimizerRun, GoesTogetherWithOffloadedActivations) {
  const LoadedScenario loaded = gpt2(on_cpu, drives);
  OffloadSettings settings;
  settings.in_flight = Bytes(64 << 20);
  settings.ssdtrain.least_elements = 1 << 20;
  settings.ssdtrain.adaptive = false;
  const OffloadOutcome outcome = run_ssdtrain(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
  const Result alone = run(loaded);
  EXPECT_GT(outcome.moved.stored, Bytes(0));
  EXPECT_LT(outcome.result.memory.peak_allocated, alone.memory.peak_allocated);
  EXPECT_GE(outcome.result.step_time, alone.step_time);
  EXPECT_EQ(outcome.result.host_memory.peak, alone.host_memory.peak);
}

}  // namespace
}  // namespace spillway::studies
