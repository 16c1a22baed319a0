// Blocks that collectives used come back when the GPU has got there (memory.record_streams).
#include "sim/replay/late_frees.h"

#include <gtest/gtest.h>

#include <map>

#include "scenario/scenario.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {
namespace {

Scenario recomputed_step(const std::vector<std::string>& settings) {
  return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-medium",
                            "sequence": 1024, "micro_batch": 8, "gradient_accumulation": 2, "recompute": "full",
                            "framework": "megatron_2022", "precision": "bf16_mixed"},
                            "hardware": {"profile": "dgx-a100"}})",
                        "test.json", "/folder", settings);
}

constexpr const char *split = "model.tensor_parallel=2", *late = "memory.record_streams=true";

TEST(LateFrees, HoldWhatCollectivesUsed) {
  const Result plain = run(load(recomputed_step({split}))), held = run(load(recomputed_step({split, late})));
  EXPECT_EQ(plain.step_time, held.step_time);
  const auto allocated = static_cast<double>(plain.memory.peak_allocated.count());
  EXPECT_NEAR(static_cast<double>(held.memory.peak_allocated.count()), allocated, 0.001 * allocated);  // other slack
  EXPECT_GT(held.memory.peak_reserved.count(), plain.memory.peak_reserved.count() * 11 / 10);
}

TEST(LateFrees, AreNoneWithoutCollectives) {
  const Result plain = run(load(recomputed_step({}))), held = run(load(recomputed_step({late})));
  EXPECT_EQ(plain.memory.peak_reserved, held.memory.peak_reserved);
  EXPECT_EQ(plain.memory.peak_allocated, held.memory.peak_allocated);
}

// STAlloc's places know no streams: what is planned stays planned.
TEST(LateFrees, CostAPlanNothing) {
  const std::string planned = "memory.allocator=stalloc";
  const Result plain = run(load(recomputed_step({split, planned}))),
               held = run(load(recomputed_step({split, planned, late})));
  EXPECT_EQ(plain.memory.peak_reserved, held.memory.peak_reserved);
}

TEST(LateFrees, EveryFreeCompletesOnce) {
  const LoadedScenario loaded = load(recomputed_step({split, late}));
  std::map<std::uint64_t, int> pending;
  std::size_t frees = 0, later = 0;
  const std::vector<MemoryEvent>& events = loaded.trace.memory_events;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::uint64_t address = events[i].address.count();
    if (events[i].action == MemoryAction::free_requested) {
      EXPECT_EQ(++pending[address], 1);
      ++frees;
      later +=
          events[i + 1].action == MemoryAction::free_completed && events[i + 1].address == events[i].address ? 0 : 1;
    } else if (events[i].action == MemoryAction::free_completed) {
      EXPECT_EQ(--pending[address], 0);
    }
  }
  EXPECT_GT(later, 100);
  EXPECT_LT(later, frees / 2);
  for (const auto& [address, count] : pending) EXPECT_EQ(count, 0);
}

// The longer the launch queue, the further ahead is the host.
TEST(LateFrees, FollowTheLaunchQueue) {
  const Result shorter = run(load(recomputed_step({split, late, "hardware.set.gpu.launch_queue_depth=64"})));
  const Result longer = run(load(recomputed_step({split, late})));
  EXPECT_LT(shorter.memory.peak_reserved, longer.memory.peak_reserved);
}

}  // namespace
}  // namespace spillway::scenario
