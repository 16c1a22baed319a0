// Techniques side by side: every row is what a run of the scenario with its settings gives.
#include "studies/candidates/compare_techniques.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "planners/offload/ssdtrain.h"
#include "planners/technique/technique_table.h"

namespace spillway::studies {
namespace {

constexpr const char* text = R"({"schema": "spillway-scenario", "version": 1,
  "model": {"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 1, "gradient_accumulation": 4,
            "pipeline_parallel": 2, "recompute": "full"},
  "hardware": {"profile": "dgx-a100-40gb"}, "memory": {"allocator": "gmlake"},
  "offload": {"least_elements": 10000, "drives": "samsung-990-pro-2tb", "technique": "ssdtrain"}})";
const BaseScenario small{text, "small.json", ""};

TEST(CompareTechniques, RowsAreRuns) {
  const std::vector<Candidate> ways = technique_candidates(small);
  const TechniqueComparison comparison = compare_techniques(small, ways);
  EXPECT_TRUE(comparison.is_whole);
  ASSERT_EQ(comparison.rows.size(), ways.size());
  EXPECT_GE(ways.size(), 25U);
  std::size_t ran = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    SCOPED_TRACE(ways[i].name);
    const TechniqueRow& each = comparison.rows[i];
    EXPECT_EQ(each.row.candidate.name, ways[i].name);
    if (!each.row.ran()) continue;
    ++ran;
    const Result result = run(load(scenario_of(small, ways[i].edits)));
    EXPECT_EQ(each.row.result.step_time, result.step_time);
    EXPECT_EQ(each.row.result.memory.peak_reserved, result.memory.peak_reserved);
    EXPECT_EQ(each.row.result.fingerprint, result.fingerprint);
  }
  EXPECT_EQ(ran, ways.size());
  EXPECT_EQ(comparison.rows.front().row.candidate.name, plain_technique);
  EXPECT_EQ(comparison.rows.front().against_plain, 1);
  // The plain step is that: what the scenario itself says of techniques is out.
  EXPECT_FALSE(comparison.rows.front().row.result.offload);
  EXPECT_EQ(comparison.rows.front().row.result.memory.allocator, "torch");
}

TEST(CompareTechniques, WaysAreOfUseToTheScenario) {
  const BaseScenario alone{R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},
                               "hardware": {"profile": "h100-sxm5-80gb"}})",
                           "alone.json", ""};
  for (const Candidate& way : technique_candidates(alone)) {
    EXPECT_FALSE(way.name.starts_with(chronos_schedule)) << "one stage has no schedule";
    EXPECT_NE(way.name, ssdtrain_word) << "there are no drives";
  }
  const std::vector<std::string> named = {"roam+stalloc"};
  const std::vector<Candidate> ways = technique_candidates(alone, named);
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_THAT(ways[1].edits, testing::IsSupersetOf({"order.technique=roam", "memory.allocator=stalloc"}));
  const std::vector<std::string> unknown = {"roam+stallloc"};
  EXPECT_THROW(technique_candidates(alone, unknown), InputError);
}

}  // namespace
}  // namespace spillway::studies
