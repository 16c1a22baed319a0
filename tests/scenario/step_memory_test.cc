#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "scenario/scenario_memory.h"

namespace spillway::scenario {
namespace {

class StepMemoryOn : public testing::TestWithParam<const char*> {
 protected:
  StepMemoryOn() { take_replayed_order(loaded_, run_); }
  LoadedScenario loaded_ =
      load(load_scenario(std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/gui/scenarios/" + GetParam() + ".json"));
  ScenarioRun run_ = run_traced(loaded_);
};

// Peak and owners are those of `spillway run`, on every clock.
TEST_P(StepMemoryOn, PeakAndOwnersAreTheResults) {
  constexpr std::array clocks = {sim::MemoryClock::gpu, sim::MemoryClock::host, sim::MemoryClock::program};
  const std::vector<MemoryPicture> pictures = step_memory_on(loaded_, run_, clocks);
  ASSERT_EQ(pictures.size(), clocks.size());
  for (const MemoryPicture& picture : pictures) {
    const auto& changes = picture.changes;
    ASSERT_TRUE(
        std::is_sorted(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
    const std::vector<std::int64_t> held = owners_at_peak(picture);
    std::int64_t total = 0;
    for (const std::int64_t bytes : held) total += bytes;
    EXPECT_EQ(total, run_.result.memory.peak_allocated.count());
    for (const PeakOwner& owner : run_.result.memory.owners) {
      const auto kind = std::find(picture.kinds.begin(), picture.kinds.end(), owner.name);
      ASSERT_NE(kind, picture.kinds.end()) << owner.name;
      EXPECT_EQ(held[static_cast<std::size_t>(kind - picture.kinds.begin())], owner.bytes.count()) << owner.name;
    }
  }
}

// Of any stage of a pipeline, not of the fullest alone.
TEST(StepMemory, EveryStagesPeakIsItsOwn) {
  const LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "sequence": 1024, "gradient_accumulation": 4, "pipeline_parallel": 4},
    "hardware": {"profile": "dgx-a100"}})",
                                                    "four stages", ""));
  ScenarioRun run = run_traced(loaded);
  take_replayed_order(loaded, run);
  const std::array clocks = {sim::MemoryClock::gpu, sim::MemoryClock::host, sim::MemoryClock::program};
  ASSERT_EQ(run.result.ranks.size(), 4U);
  for (std::int16_t device = 0; device < 4; ++device)
    for (const MemoryPicture& picture : step_memory_on(loaded, run, clocks, device)) {
      Bytes most{};
      for (const MemoryPicture::Point& point : picture.curve) most = std::max(most, point.allocated);
      EXPECT_EQ(most, run.result.ranks[static_cast<std::size_t>(device)].peak_allocated) << device;
    }
}

// One stage's memory on the GPU's clock, walked by brute force: what an event takes is there when the first work that
// its rank issues behind the event's call begins, what it leaves goes when the last work issued before has ended,
// nothing before the host asks, nothing before the event ahead. What no call asks for is there when the step begins:
// `before`.
std::vector<std::pair<std::int64_t, std::int64_t>> walk(const Trace& trace, const Result& result, std::int16_t device,
                                                        std::int64_t before) {
  const std::vector<std::int64_t> issued = sim::issue_places(trace);
  const auto stage_of = [&](std::size_t op) { return trace.lanes[index_of(trace.ops.lane[op])].rank; };
  std::vector<std::pair<std::int64_t, std::int64_t>> curve;
  std::int64_t held = before, reached = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device) continue;
    const bool takes = event.action == MemoryAction::allocate;
    std::int64_t at = 0;
    if (event.anchor != OpId::none) {
      const std::size_t call = index_of(event.anchor);
      std::int64_t until = issued[call];
      for (std::size_t op = call; op < trace.ops.size() && stage_of(op) == stage_of(call); ++op)
        if (trace.ops.launched_by[op] == event.anchor) until = std::max(until, issued[op]);
      std::int64_t next = -1, next_issued = 0, ended = 0;
      for (std::size_t op = 0; op < trace.ops.size(); ++op) {
        if (stage_of(op) != stage_of(call) || !is_device_work(trace.ops.kind[op])) continue;
        if (trace.lanes[index_of(trace.ops.lane[op])].kind != LaneKind::stream) continue;
        if (event.stream != LaneId::none && trace.ops.lane[op] != event.stream) continue;
        if (issued[op] <= until) {
          ended = std::max(ended, result.op_end[op].count());
        } else if (next < 0 || issued[op] < next_issued) {
          next = result.op_start[op].count();
          next_issued = issued[op];
        }
      }
      at = std::max(result.op_start[call].count(), takes && next >= 0 ? next : ended);
    }
    const TensorRole role =
        event.tensor == TensorId::none ? TensorRole::unknown : trace.tensors.role[index_of(event.tensor)];
    const bool is_state =
        event.anchor == OpId::none && (role == TensorRole::weight || role == TensorRole::gradient ||
                                       role == TensorRole::optimizer_state || role == TensorRole::buffer);
    if (!is_state) held += takes ? event.bytes.count() : -event.bytes.count();
    curve.emplace_back(reached = std::max(reached, at), held);
  }
  return curve;
}

// Every point of every stage's curve, when and how much; the first stage's events are ahead of the others' in the
// trace.
TEST(StepMemory, EveryStagesCurveIsAnIndependentWalks) {
  for (const std::string schedule : {"1f1b", "interleaved", "zb-h1"}) {
    const LoadedScenario loaded = load(parse_scenario(
        R"({"schema": "spillway-scenario", "version": 1, "memory": {"allocator": "ideal"},
          "model": {"name": "gpt2-small", "sequence": 1024, "gradient_accumulation": 6, "pipeline_parallel": 3,
                    "pipeline_schedule": ")" +
            schedule + R"("}, "hardware": {"profile": "dgx-a100"}})",
        "three stages", ""));
    ScenarioRun run = run_traced(loaded);
    take_replayed_order(loaded, run);
    const Trace& trace = run.trace(loaded);
    for (std::int16_t stage = 0; stage < 3; ++stage) {
      const MemoryPicture picture = step_memory_on(loaded, run, std::array{MemoryClock::gpu}, stage).front();
      const auto walked = walk(trace, run.result, stage, picture.curve.front().allocated.count());
      ASSERT_EQ(picture.curve.size(), walked.size() + 1) << schedule << ' ' << stage;  // and what was there before
      for (std::size_t i = 0; i < walked.size(); ++i) {
        ASSERT_EQ(picture.curve[i + 1].at, walked[i].first) << schedule << ' ' << stage << ' ' << i;
        ASSERT_EQ(picture.curve[i + 1].allocated.count(), walked[i].second) << schedule << ' ' << stage << ' ' << i;
      }
    }
  }
}

// Whatever the technique: a stage's memory is fullest while it works, and moves throughout the step.
TEST(StepMemory, EveryStagesPeakLiesInItsOwnPasses) {
  for (const std::vector<std::string>& edits : {std::vector<std::string>{"offload.technique=checkpoints"},
                                                {"offload.technique=ssdtrain", "offload.tier=host"},
                                                {"order.technique=roam"},
                                                {"memory.allocator=torch-expandable"},
                                                {"model.pipeline_schedule=chronos"}}) {
    const std::string& edit = edits.front();
    const LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
        "model": {"name": "gpt2-small", "sequence": 1024, "gradient_accumulation": 4, "pipeline_parallel": 4},
        "hardware": {"profile": "dgx-a100"}})",
                                                      "four stages", "", edits));
    ScenarioRun run = run_traced(loaded);
    take_replayed_order(loaded, run);
    const Trace& trace = run.trace(loaded);
    for (std::int16_t stage = 0; stage < 4; ++stage)
      for (const MemoryClock clock : {MemoryClock::gpu, MemoryClock::host}) {
        const MemoryPicture picture = step_memory_on(loaded, run, std::array{clock}, stage).front();
        std::int64_t begin = run.result.replayed.count(), end = 0;
        for (std::size_t op = 0; op < trace.ops.size(); ++op) {
          if (trace.lanes[index_of(trace.ops.lane[op])].rank != stage || run.result.op_start[op] == unknown_time)
            continue;
          begin = std::min(begin, run.result.op_start[op].count());
          end = std::max(end, run.result.op_end[op].count());
        }
        const auto peak = std::max_element(picture.curve.begin(), picture.curve.end(),
                                           [](const auto& a, const auto& b) { return a.allocated < b.allocated; });
        EXPECT_GE(peak->at, begin) << edit << ' ' << stage;
        EXPECT_LE(peak->at, end) << edit << ' ' << stage;
        const auto moved = std::count_if(picture.curve.begin(), picture.curve.end(), [&](const auto& point) {
          return point.at > begin && point.at < begin + (end - begin) / 2;
        });
        EXPECT_GT(moved, static_cast<std::ptrdiff_t>(picture.curve.size() / 8)) << edit << ' ' << stage;
      }
  }
}

// On the GPU's clock memory fills while the GPU computes, and weights are there to the end of the step.
TEST_P(StepMemoryOn, TheGpusClockIsTheTimelines) {
  const std::array clocks = {sim::MemoryClock::gpu, sim::MemoryClock::host};
  const std::vector<MemoryPicture> pictures = step_memory_on(loaded_, run_, clocks);
  const auto peak_at = [](const MemoryPicture& picture) {
    return std::max_element(picture.curve.begin(), picture.curve.end(),
                            [](const auto& a, const auto& b) { return a.allocated < b.allocated; })
        ->at;
  };
  EXPECT_GE(peak_at(pictures[0]), peak_at(pictures[1]));
  const bool host_runs_ahead = std::string(GetParam()) != "bound-by-pcie";  // streamed weights hold the host up
  EXPECT_EQ(peak_at(pictures[0]) > 10 * peak_at(pictures[1]), host_runs_ahead);
  EXPECT_EQ(pictures[0].end, run_.result.replayed.count());
  const auto& blocks = pictures[0].blocks;
  EXPECT_TRUE(std::all_of(blocks.begin(), blocks.end(), [&](const MemoryPicture::Block& block) {
    return block.freed >= 0 || block.end == pictures[0].end;
  }));
}

// What pictures and reports draw is the window's curve, and the figures beside it stay.
TEST_P(StepMemoryOn, ReportsDrawTheGpusClock) {
  const std::array clocks = {sim::MemoryClock::gpu};
  const MemoryPicture picture = step_memory_on(loaded_, run_, clocks).front();
  const MemoryResult memory = result_on_gpu_clock(loaded_, run_).memory;
  EXPECT_EQ(memory.peak_allocated, run_.result.memory.peak_allocated);
  const auto less = [](const auto& a, const auto& b) { return a.allocated < b.allocated; };
  const auto drawn = std::max_element(memory.timeline.begin(), memory.timeline.end(), less);
  const auto wanted = std::max_element(picture.curve.begin(), picture.curve.end(), less);
  EXPECT_EQ(drawn->allocated, memory.peak_allocated);
  EXPECT_EQ(drawn->time.count(), wanted->at);
  EXPECT_EQ(memory.peak_time, drawn->time);
  EXPECT_TRUE(std::is_sorted(memory.timeline.begin(), memory.timeline.end(),
                             [](const MemoryPoint& a, const MemoryPoint& b) { return a.time < b.time; }));
}

TEST_P(StepMemoryOn, TheCriticalPathIsTheWholeStep) {
  Picos reached{};
  for (const PathStep& piece : run_.result.path) {
    ASSERT_EQ(piece.begin, reached);
    ASSERT_GT(piece.end, piece.begin);
    reached = piece.end;
  }
  EXPECT_EQ(reached, run_.result.replayed);
}

// It fits because the allocator gives segments back at the limit: no picture shows more than the step reserves.
// A step that recomputes by itself keeps its layers' inputs: the technique takes these away, and nothing is made twice.
TEST(StepMemory, CheckpointsOfARecomputedStepLeave) {
  const auto step = [](const std::string& more) {
    return run(load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
        "model": {"name": "llama-3.2-1b", "layers": 8, "sequence": 8192, "recompute": "full", "optimizer": "sgd",
                  "fused_kernels": false, "framework": "huggingface", "loss": "chunked"},
        "hardware": {"profile": "h100-80gb-1gpu"})" +
                                       more + "}",
                                   "test", "")));
  };
  const Result kept = step("");
  const Result away = step(R"(, "offload": {"technique": "checkpoints", "tier": "host"})");
  ASSERT_TRUE(away.offload);
  EXPECT_GT(away.offload->stored, Bytes(5 * std::int64_t{8192} * 2048 * 2)) << "inputs of most of 8 layers";
  EXPECT_EQ(away.offload->recomputed, Bytes(0));
  EXPECT_LE(away.memory.peak_allocated, kept.memory.peak_allocated);
}

TEST(StepMemory, IsOfTheRunUnderTheLimit) {
  const std::vector<std::string> mixed{"offload.technique=mix", "offload.drives=samsung-990-pro-2tb"};
  const LoadedScenario loaded = load(load_scenario(
      std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/gui/scenarios/fits-after-one-toggle.json", mixed));
  ScenarioRun run = run_traced(loaded);
  take_replayed_order(loaded, run);
  const MemoryResult& memory = run.result.memory;
  ASSERT_TRUE(memory.gives_back) << "what this is about";
  const auto reserved_most = [](const auto& points) {
    return std::max_element(points.begin(), points.end(),
                            [](const auto& a, const auto& b) { return a.reserved < b.reserved; })
        ->reserved;
  };
  EXPECT_EQ(reserved_most(memory.timeline), memory.peak_reserved);
  const std::array clocks = {MemoryClock::gpu};
  EXPECT_EQ(reserved_most(step_memory_on(loaded, run, clocks).front().curve), memory.peak_reserved);
}

// What is held where memory runs out before the step is told by owner too: all that was allocated, to the rounding of
// what is shown and of buffers. GPT-2 XL in mixed precision: weights, then states, then activations of the first
// iteration.
TEST(StepMemory, WhatMemoryRanOutOfStartingUpHasOwners) {
  struct Case {
    int capacity_mib;
    bool states, activations;
  };
  for (const auto& [capacity_mib, states, activations] :
       {Case{2000, false, false}, Case{6500, true, false}, Case{26000, true, true}}) {
    const LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
        "model": {"name": "gpt2-xl", "sequence": 1024, "micro_batch": 8}, "hardware": {"profile": "h100-80gb-1gpu"},
        "memory": {"capacity_bytes": )" + std::to_string(std::int64_t{capacity_mib} << 20) +
                                                          "}}",
                                                      "test", ""));
    const std::string why = run(loaded).memory.explanation;
    EXPECT_EQ(why.find("rounding of buffers"), std::string::npos) << why;
    const std::size_t resident = why.find("resident: ");
    ASSERT_NE(resident, std::string::npos) << why;
    const std::string owners = why.substr(resident + 10, why.find(';', resident) - resident - 10);
    EXPECT_NE(owners.find(" weight"), std::string::npos) << why;
    EXPECT_EQ(owners.find(" optimizer_state") != std::string::npos, states) << why;
    EXPECT_EQ(owners.find(" activation") != std::string::npos, activations) << why;
    double shown_gib = 0;
    std::istringstream read(owners);
    for (std::string part; std::getline(read, part, ',');) shown_gib += std::stod(part);
    const std::size_t allocated = why.find("MiB allocated for ");
    ASSERT_NE(allocated, std::string::npos) << why;
    const double of_mib = std::stod(why.substr(why.rfind(' ', allocated - 2) + 1));
    EXPECT_NEAR(shown_gib * 1024, of_mib, 30) << why;
  }
}

INSTANTIATE_TEST_SUITE_P(Bundled, StepMemoryOn,
                         testing::Values("bound-by-pcie", "fits-after-one-toggle", "wears-out-its-drives"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace spillway::scenario
