// Memory over time: what bins show is what the changes sum up to, and what the replay says.
#include "studies/answer/stage_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "scenario/scenario_memory.h"

namespace spillway::studies {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

// Each bin as its span is walked instant by instant.
TEST(StageMemory, ABinIsTheFullestInstantOfItsSpan) {
  std::mt19937_64 random(4711);
  for (int round = 0; round < 50; ++round) {
    MemoryPicture picture;
    picture.timed = true;
    picture.begin = 0;
    picture.end = 997;
    picture.kinds = {"activation", "weight"};
    std::vector<std::int64_t> held = {0, 0};
    std::int64_t at = 0;
    while (at < picture.end) {
      const std::size_t kind = random() % 2;
      const std::int64_t bytes = random() % 3 == 0 ? -held[kind] / 2 : static_cast<std::int64_t>(random() % 1000);
      held[kind] += bytes;
      picture.changes.push_back({at, kind, bytes});
      at += static_cast<std::int64_t>(random() % 7);
    }
    const std::size_t bins = 13;
    const StageMemory stage = stage_of(picture, bins);
    ASSERT_EQ(stage.bins.size(), bins);
    ASSERT_EQ(stage.owners.front(), "weights");  // from below, whatever holds most
    std::int64_t peak = 0, now = 0;
    std::vector<std::int64_t> most(bins, -1);
    std::size_t next = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      most[bin] = now;
      while (next < picture.changes.size() && picture.changes[next].at * static_cast<std::int64_t>(bins) <
                                                  picture.end * static_cast<std::int64_t>(bin + 1)) {
        now += picture.changes[next++].bytes;
        most[bin] = std::max(most[bin], now);
        peak = std::max(peak, now);
      }
    }
    for (std::size_t bin = 0; bin < bins; ++bin) EXPECT_EQ(sum_of(stage.bins[bin]), most[bin]) << bin;
    EXPECT_EQ(sum_of(stage.at_peak), peak);
  }
}

// Of a pipeline: each stage's peak is its rank's, inside one of its own passes, and its owners are all of it.
TEST(StageMemory, OfEachStageIsTheReplays) {
  const LoadedScenario loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "sequence": 1024, "gradient_accumulation": 4, "pipeline_parallel": 4},
    "hardware": {"profile": "dgx-a100"}})",
                                                    "four stages", ""));
  ScenarioRun run = run_traced(loaded);
  take_replayed_order(loaded, run);
  const Result& result = run.result;
  const std::vector<StageMemory> stages = stage_memories(loaded, run, 200);
  ASSERT_EQ(stages.size(), 4U);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageMemory& stage = stages[i];
    EXPECT_EQ(stage.name, result.ranks[i].name);
    EXPECT_EQ(stage.peak_allocated, result.ranks[i].peak_allocated);
    EXPECT_EQ(sum_of(stage.at_peak), stage.peak_allocated.count());
    std::int64_t most = 0;
    for (const std::vector<std::int64_t>& bin : stage.bins) most = std::max(most, sum_of(bin));
    EXPECT_EQ(most, stage.peak_allocated.count());
    EXPECT_TRUE(std::any_of(stage.passes.begin(), stage.passes.end(), [&](const Pass& pass) {
      return pass.begin <= stage.peak_at && stage.peak_at <= pass.end;
    })) << stage.name;
    ASSERT_FALSE(stage.tensors.empty());
    Bytes told{};
    for (const HeldTensor& tensor : stage.tensors) told += tensor.bytes;
    EXPECT_LE(told, stage.peak_allocated);
    EXPECT_TRUE(std::is_sorted(stage.tensors.begin(), stage.tensors.end(),
                               [](const HeldTensor& a, const HeldTensor& b) { return a.bytes > b.bytes; }));
  }
  const auto fullest = std::max_element(stages.begin(), stages.end(), [](const StageMemory& a, const StageMemory& b) {
    return a.peak_allocated < b.peak_allocated;
  });
  for (const PeakOwner& owner : result.memory.owners) {
    const auto at = std::find(fullest->owners.begin(), fullest->owners.end(), owner_words(owner.name));
    if (at == fullest->owners.end()) continue;  // among the others
    EXPECT_EQ(fullest->at_peak[static_cast<std::size_t>(at - fullest->owners.begin())], owner.bytes.count())
        << owner.name;
  }
}

}  // namespace
}  // namespace spillway::studies
