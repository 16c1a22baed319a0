#include "studies/sweep/scenario_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/read_file.h"
#include "studies/sweep/sweep_run.h"

namespace spillway::studies {
namespace {

const std::string root = std::getenv("SPILLWAY_SOURCE_ROOT");

SweepOutcome swept(const std::string& scenario) {
  const SweepFile file = parse_sweep(sweep_around(scenario), "around", root);
  SweepStore store;
  return run_sweep(file, {}, store);
}

// Every point trains as many tokens a step as the scenario; the fastest is the one that trains them in the least time,
// which a micro-batch of 1 is not.
TEST(ScenarioSweep, HoldsTheWorkOfAStepEqual) {
  const std::string scenario = R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-large", "sequence": 1024, "micro_batch": 8}, "hardware": {"profile": "rtx-4090"}})";
  const SweepOutcome outcome = swept(scenario);
  const SweepRow* fastest = nullptr;
  for (const SweepRow& row : outcome.rows) {
    if (!row.ran()) continue;
    EXPECT_DOUBLE_EQ(row.replayed.tokens_per_step, 8 * 1024.0) << row.candidate.name;
    if (row.on_front && (fastest == nullptr || row.replayed.step_seconds < fastest->replayed.step_seconds))
      fastest = &row;
  }
  ASSERT_NE(fastest, nullptr);
  for (const SweepRow& row : outcome.rows)
    EXPECT_TRUE(!row.does || row.replayed.step_seconds >= fastest->replayed.step_seconds) << row.candidate.name;
  for (const std::string& edit : fastest->candidate.edits) EXPECT_NE(edit, "model.micro_batch=1");
}

TEST(ScenarioSweep, KnowsBatchesHoweverTheyAreSaid) {
  const auto batch = [](const std::string& model) {
    const std::string text = sweep_around(R"({"schema": "spillway-scenario", "version": 1, "model": )" + model +
                                          R"(, "hardware": {"profile": "rtx-4090"}})");
    const SweepFile file = parse_sweep(text, "around", "");
    const std::size_t at = file.base.find("\"global_batch\":");
    EXPECT_NE(at, std::string::npos);
    return std::atoi(file.base.c_str() + at + 15);
  };
  EXPECT_EQ(batch(R"({"name": "gpt2-small"})"), 1);
  EXPECT_EQ(batch(R"({"name": "gpt2-small", "micro_batch": 4, "gradient_accumulation": 3})"), 12);
  EXPECT_EQ(batch(R"({"name": "gpt2-small", "micro_batch": 4, "data_parallel": 2})"), 8);
  EXPECT_EQ(batch(R"({"name": "gpt2-small", "global_batch": 64, "data_parallel": 2})"), 64);
}

}  // namespace
}  // namespace spillway::studies
