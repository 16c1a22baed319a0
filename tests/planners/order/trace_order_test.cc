// Orders of traces: that they compute the same, hold no more, and replay.
#include "planners/order/trace_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/input_error.h"
#include "planners/order/order_check.h"
#include "scenario/scenario_run.h"
#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/request_lives.h"
#include "sim/replay/plan_check.h"
#include "sim/replay/planned_trace.h"
#include "tests/planners/random_trace.h"
#include "tests/test_size.h"
#include "tests/traces/test_files.h"
#include "traces/formats/read.h"
#include "traces/host_order.h"

namespace spillway::scenario {
namespace {

// a makes 4 MiB, b 8; d reads b's and makes 1, c reads a's and makes 1, e reads both. As launched (a b d c e) d holds
// 4, 8 and 1; with b and d first it holds 8 and 1, and c 1, 4 and 1.
class FiveKernels : public ::testing::Test {
 protected:
  FiveKernels() {
    host_ = trace_.lane({.kind = LaneKind::host_thread});
    stream_ = trace_.lane({.kind = LaneKind::stream, .device = 0});
    for (const std::int64_t mebibytes : {4, 8, 1, 1}) {
      trace_.tensors.name.push_back(trace_.strings.intern("t" + std::to_string(trace_.tensors.size())));
      trace_.tensors.bytes.emplace_back(mebibytes << 20);
      trace_.tensors.storage.push_back(static_cast<std::uint32_t>(trace_.tensors.bytes.size() - 1));
      trace_.tensors.role.push_back(TensorRole::unknown);
      trace_.tensors.dtype.push_back({});
    }
    kernel("a", {}, {0});
    kernel("b", {}, {1});
    kernel("d", {1}, {3});
    kernel("c", {0}, {2});
    kernel("e", {2, 3}, {});
    trace_.set(Capability::uses);
    trace_.set(Capability::times);
  }

  void kernel(const char* name, const std::vector<std::uint32_t>& reads, const std::vector<std::uint32_t>& writes) {
    const OpId by = trace_.append_op({.name = trace_.strings.intern("cudaLaunchKernel"),
                                      .kind = OpKind::launch,
                                      .lane = host_,
                                      .start = clock_,
                                      .duration = microseconds(2)});
    clock_ += microseconds(3);
    const OpId op = trace_.append_op({.name = trace_.strings.intern(name),
                                      .kind = OpKind::kernel,
                                      .lane = stream_,
                                      .duration = microseconds(10),
                                      .launched_by = by});
    for (const std::uint32_t t : reads) trace_.uses.push_back({op, TensorId(t), Access::read});
    for (const std::uint32_t t : writes) trace_.uses.push_back({op, TensorId(t), Access::write});
  }
  // The plan that runs the kernels in the order of the letters.
  [[nodiscard]] OrderPlan order(const std::string& letters) const {
    OrderPlan plan{digest_of_works(trace_), {}};
    for (const char letter : letters)
      for (std::size_t i = 0; i < trace_.ops.size(); ++i)
        if (trace_.strings.text(trace_.ops.name[i]) == std::string(1, letter))
          plan.order.push_back(OpId(static_cast<std::uint32_t>(i)));
    return plan;
  }
  [[nodiscard]] std::string refusal(const std::string& letters) const {
    try {
      reordered(trace_, order(letters));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  [[nodiscard]] static std::string kernels_of(const Trace& trace) {
    std::string letters;
    for (const OpId op : host_order(trace))
      if (trace.ops.kind[index_of(op)] == OpKind::kernel) letters += trace.strings.text(trace.ops.name[index_of(op)]);
    return letters;
  }

  Trace trace_;
  LaneId host_ = LaneId::none, stream_ = LaneId::none;
  Picos clock_{};
};

TEST_F(FiveKernels, PlannedOrderHoldsLeast) {
  const TraceOrder found = plan_order(trace_);
  EXPECT_EQ(found.widest().program_peak, 13 << 20);
  EXPECT_EQ(found.widest().peak, found.widest().order.peak_bytes);
  EXPECT_TRUE(found.widest().order.proven);
  EXPECT_EQ(found.widest().peak, 9 << 20);
  EXPECT_EQ(kernels_of(found.trace), "bdace");
  EXPECT_EQ(found.widest().recorded_peak, -1);
  EXPECT_EQ(found.widest().graph.device, 0);
}

TEST_F(FiveKernels, ReorderedHostCallsKeepTheirPauses) {
  const Trace trace = reordered(trace_, order("acbde"));
  EXPECT_EQ(kernels_of(trace), "acbde");
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(trace.ops.start[2 * i], microseconds(3) * static_cast<std::int64_t>(i));
  EXPECT_EQ(trace.ops.start[1], unknown_time);
  EXPECT_TRUE(trace.has(Capability::memory));
  EXPECT_TRUE(trace.is_inferred(Capability::memory));
}

TEST_F(FiveKernels, OrdersThatBreakWhatTheyComputeAreRefused) {
  EXPECT_THAT(refusal("cabde"), testing::HasSubstr("before it is written"));
  EXPECT_THAT(refusal("abcd"), testing::HasSubstr("not in the plan"));
  EXPECT_THAT(refusal("abcdd"), testing::HasSubstr("comes twice"));
  kernel("f", {}, {0});  // overwrites what c reads
  EXPECT_THAT(refusal("afbcde"), testing::HasSubstr("after it is overwritten"));
  kernel("g", {}, {0});
  EXPECT_THAT(refusal("abcdegf"), testing::HasSubstr("out of turn"));
  OrderPlan other = order("abcdefg");
  ++other.digest;
  EXPECT_THROW(reordered(trace_, other), InputError);
}

// c is run again before e, and reads a's then: that stays, though f, which read it last, now comes first.
TEST_F(FiveKernels, RepeatedOpsKeepWhatTheyRead) {
  kernel("f", {0}, {});
  const auto op = [](const Trace& trace, const char* name) {
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.strings.text(trace.ops.name[i]) == name) return OpId(static_cast<std::uint32_t>(i));
    return OpId::none;
  };
  const auto freed_at = [](const Trace& trace) {
    for (const MemoryEvent& event : trace.memory_events)
      if (event.tensor == TensorId(0) && event.action == MemoryAction::free_requested) return event.anchor;
    return OpId::none;
  };
  const OpId c = op(trace_, "c"), e = op(trace_, "e"), f = op(trace_, "f");
  OffloadPlan fates;
  fates.absences = {{TensorId(2), Tier::recompute, OpId::none, c, OpId::none, e},
                    {TensorId(0), Tier::host, op(trace_, "a"), f, OpId::none, OpId::none}};
  fates.recomputations = {{e, {c}}};
  const Reordered plain = reorder(trace_, order("abdcfe")), moved = reorder(trace_, order("abdcfe"), &fates);
  EXPECT_EQ(freed_at(plain.trace), plain.trace.ops.launched_by[index_of(op(plain.trace, "f"))]);
  EXPECT_EQ(freed_at(moved.trace), moved.trace.ops.launched_by[index_of(op(moved.trace, "e"))]);
  const OffloadPlan now = moved_fates(trace_, moved, fates);
  EXPECT_EQ(now.absences[1].leave_after, op(moved.trace, "e"));
  EXPECT_EQ(planned_trace(moved.trace, now).fetch.size(), 2U);
}

TEST_F(FiveKernels, OrdersThatBreakWaitsAreRefused) {
  trace_.syncs.push_back({.op = trace_.append_op({.name = trace_.strings.intern("w"),
                                                  .kind = OpKind::stream_sync,
                                                  .lane = host_,
                                                  .start = clock_,
                                                  .duration = microseconds(1)}),
                          .lane = stream_});
  clock_ += microseconds(1);
  kernel("f", {}, {});
  EXPECT_EQ(refusal("acbdewf"), "");
  EXPECT_THAT(refusal("abdcwef"), testing::HasSubstr("issued before works that it waits for"));
  EXPECT_THAT(refusal("abdcefw"), testing::HasSubstr("before a wait it stood behind"));
  trace_.edges.push_back({.from = OpId(3), .to = OpId(7)});  // c waits for b
  EXPECT_THAT(refusal("acbdewf"), testing::HasSubstr("which it waits for"));
}

TEST_F(FiveKernels, PlansRoundTrip) {
  TraceOrderOptions options;
  options.layout = true;
  const TraceOrder found = plan_order(trace_, options);
  const std::string text = plan_json(found.plan);
  ByteSource source = ByteSource::from_memory("plan", std::as_bytes(std::span(text.data(), text.size())), text.size());
  const Plan read = read_plan(source);
  EXPECT_EQ(plan_json(read), text);
  EXPECT_EQ(read.order->order, found.plan.order->order);
  for (const char* bad : {"{", "[]", R"({"schema": "spillway-plan", "version": 2})",
                          R"({"schema": "spillway-plan", "version": 1, "ordr": {}})",
                          R"({"schema": "spillway-plan", "version": 1, "order": {"digest": "xyz", "ops": []}})",
                          R"({"schema": "spillway-plan", "version": 1, "order": {"digest": "1", "ops": [-1]}})"}) {
    const std::string_view view = bad;
    ByteSource broken = ByteSource::from_memory("plan", std::as_bytes(std::span(view.data(), view.size())), 1000);
    EXPECT_THROW(read_plan(broken), InputError) << bad;
  }
  // No text at all: said of its first byte, whatever comes behind.
  const std::string zeros(1 << 20, '\0');
  ByteSource empty = ByteSource::from_memory("plan", std::as_bytes(std::span(zeros)), zeros.size());
  try {
    static_cast<void>(read_plan(empty));
    ADD_FAILURE() << "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.place(), "byte 0");
  }
}

std::string source_file(const std::string& file) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return (std::filesystem::path(root == nullptr ? "." : root) / file).string();
}

// A generated step, planned, replayed with its order and layout: the pool is the layout, nothing falls beside it, the
// step takes the same kernels' time.
TEST(TraceOrder, AGeneratedStepReplaysItsPlan) {
  const Scenario scenario = parse_scenario(
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 256,
          "micro_batch": 1}, "hardware": {"profile": "h100-80gb-1gpu"}})",
      "test.json", "");
  LoadedScenario loaded = load(scenario);
  const Result plain = run(loaded);
  TraceOrderOptions options;
  options.layout = true;
  const TraceOrder found = plan_order(loaded.trace, options);
  EXPECT_LE(found.widest().peak, found.widest().program_peak);
  EXPECT_LE(found.widest().program_peak, found.widest().recorded_peak);
  EXPECT_EQ(found.widest().peak, found.widest().order.peak_bytes);  // the graph's model is what the stream then holds
  apply_plan(loaded, found.plan);
  const Result planned = run(loaded);
  EXPECT_EQ(planned.memory.peak_reserved.count(), found.layouts.begin()->second.height);
  EXPECT_LT(planned.memory.peak_reserved, plain.memory.peak_reserved);
  Picos busy{}, planned_busy{};
  for (const StepResult& step : plain.steps) busy += step.device_busy;
  for (const StepResult& step : planned.steps) planned_busy += step.device_busy;
  EXPECT_EQ(busy, planned_busy);
}

// The program's own order changes no start, no kernel and no dependency of the replay.
TEST(TraceOrder, TheProgramsOrderReplaysAsBefore) {
  const Scenario scenario = parse_scenario(
      R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small", "sequence": 256,
          "micro_batch": 2}, "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"allocator": "ideal"}})",
      "test.json", "");
  LoadedScenario loaded = load(scenario);
  const Result plain = run(loaded);
  apply_plan(loaded, Plan{.order = program_order(loaded.trace)});
  const Result again = run(loaded);
  EXPECT_EQ(plain.step_time, again.step_time);
  EXPECT_EQ(plain.op_start, again.op_start);
  EXPECT_EQ(plain.breakdown, again.breakdown);
}

// ProfilerStep of our own capture on a CPU, joined with its ExecutionTrace.
TEST(TraceOrder, ACaptureReplaysItsPlan) {
  const std::string folder = source_file("traces/data/gpt2-tiny-cpu/");
  const std::vector<std::string> settings = {"execution_trace=" + folder + "graph.json.gz"};
  LoadedScenario loaded = load(scenario_for_trace(folder + "steps.json.gz", settings));
  const TraceOrder found = plan_order(loaded.trace);
  EXPECT_EQ(found.widest().graph.device, -1);
  EXPECT_LE(found.widest().peak, found.widest().program_peak);
  const Result plain = run(loaded);
  apply_plan(loaded, Plan{.order = program_order(loaded.trace)});
  EXPECT_EQ(run(loaded).step_time, plain.step_time);
  apply_plan(loaded, found.plan);
  EXPECT_NEAR(to_seconds(run(loaded).step_time), to_seconds(plain.step_time), 0.01 * to_seconds(plain.step_time));
}

// A real ExecutionTrace of GPT-2 Large: uses, no times, no frees.
TEST(TraceOrder, Gpt2LargeExecutionTrace) {
  const auto file = test::unpacked_file("hf_GPT2_et.json", "traces/param-et_replay/hf_GPT2_et.json.tar.gz");
  if (!file) GTEST_SKIP() << "no hf_GPT2_et.json beside the source tree";
  TraceOrderOptions options;
  options.layout = true;
  const TraceOrder found = plan_order(read_trace(*file), options);
  EXPECT_LT(found.widest().peak, found.widest().program_peak);
  EXPECT_EQ(found.widest().peak, found.widest().order.peak_bytes);
  EXPECT_LE(static_cast<double>(found.layouts.begin()->second.height),
            1.002 * static_cast<double>(found.widest().peak));
}

TEST(TraceOrder, TracesWithoutUsesAreRefused) { EXPECT_THROW(plan_order(Trace{}), InputError); }

// What every work reads, as numbers: each write mixes the work's name with what it has read.
std::vector<std::uint64_t> values_read(const Trace& trace) {
  std::vector<std::uint64_t> value(trace.tensors.size());
  for (std::size_t t = 0; t < value.size(); ++t) value[t] = t + 1;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> read;  // by name, to compare traces in different orders
  for (const OpId op : host_order(trace)) {
    std::uint64_t mixed = static_cast<std::uint64_t>(trace.strings.text(trace.ops.name[index_of(op)]).size());
    for (const char c : trace.strings.text(trace.ops.name[index_of(op)]))
      mixed = mixed * golden_gamma + static_cast<unsigned char>(c);
    const std::uint64_t name = mixed;
    for (const Use& use : trace.uses)
      if (use.op == op && use.access == Access::read)
        mixed = (mixed ^ value[index_of(use.tensor)]) * 0xff51afd7ed558ccdULL + 1;
    for (const Use& use : trace.uses)
      if (use.op == op && use.access == Access::write) value[index_of(use.tensor)] = mixed ^ (mixed >> 29U);
    read.emplace_back(name, mixed);
  }
  std::sort(read.begin(), read.end());
  std::vector<std::uint64_t> all = value;
  for (const auto& [name, mixed] : read) all.push_back(mixed);
  return all;
}

// Orders drawn at random: those that are not refused compute the same numbers; most are refused.
TEST(TraceOrder, WhatIsNotRefusedComputesTheSame) {
  SplitMix64 random(7);
  const int rounds = spillway::test::cases(50, 4000);
  int refused = 0, taken = 0;
  for (int round = 0; round < rounds; ++round) {
    const Trace trace = random_trace(random);
    OrderPlan plan = program_order(trace);
    for (std::size_t swaps = 1 + random.next() % 3; swaps > 0 && plan.order.size() > 1; --swaps) {
      const std::size_t at = random.next() % (plan.order.size() - 1);
      std::swap(plan.order[at], plan.order[at + 1]);
    }
    try {
      const Trace after = reordered(trace, plan);
      ++taken;
      ASSERT_EQ(values_read(trace), values_read(after)) << "round " << round;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 8);
  EXPECT_GT(taken, rounds / 8);
}

}  // namespace
}  // namespace spillway::scenario
