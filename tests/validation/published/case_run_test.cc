#include "validation/published/case_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "reports/pictures/scatter_svg.h"
#include "tests/validation/published/tiny_cases.h"
#include "validation/published/case_panels.h"

namespace spillway::validation {
namespace {

using testing::HasSubstr;

std::vector<CaseFile> files_of(const std::string& cases, const std::string& more = "") {
  return {parse_cases(tiny_cases(cases, more), "own.json")};
}

// The same step in several units: throughput x time = sequences of the step, 3 = micro-batch x accumulation.
TEST(CaseRun, MetricsOfOneReplayAgree) {
  const auto files = files_of(R"(
      {"id": "ms", "value": 1, "model.micro_batch": 3},
      {"id": "s", "value": 1, "unit": "s", "model.micro_batch": 3},
      {"id": "samples", "value": 1, "metric": "throughput", "unit": "samples/s", "model.micro_batch": 3},
      {"id": "tokens", "value": 1, "metric": "throughput", "unit": "tokens/s/GPU", "model.micro_batch": 3},
      {"id": "peak", "value": 1, "metric": "peak_allocated", "unit": "MiB", "model.micro_batch": 3},
      {"id": "state", "value": 1, "metric": "state_memory", "unit": "MiB", "model.micro_batch": 3},
      {"id": "activations", "value": 1, "metric": "activation_memory", "unit": "MiB", "model.micro_batch": 3},
      {"id": "forward", "value": 1, "metric": "layer_forward_time", "model.micro_batch": 3},
      {"id": "backward", "value": 1, "metric": "layer_backward_time", "model.micro_batch": 3},
      {"id": "layer", "value": 1, "metric": "layer_time", "model.micro_batch": 3})");
  std::size_t setups = 0;
  const auto outcomes = run_cases(files, [&setups](std::size_t, std::size_t total) {
    setups = total;
    return true;
  });
  ASSERT_EQ(outcomes.size(), 10U);
  EXPECT_EQ(setups, 1U);  // one replay for all
  const auto at = [&outcomes](std::size_t i) { return outcomes[i].predicted; };
  for (const CaseOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.skipped, "");
    EXPECT_GT(outcome.predicted, 0) << outcome.measured->id;
  }
  EXPECT_DOUBLE_EQ(at(0), 1000 * at(1));
  EXPECT_NEAR(at(2) * at(1), 3, 1e-9);
  EXPECT_NEAR(at(3), at(2) * 128, 1e-6);
  EXPECT_NEAR(at(4), at(5) + at(6), 1e-9);
  EXPECT_DOUBLE_EQ(at(9), at(7) + at(8));
  EXPECT_LT(at(9), at(0));
}

TEST(CaseRun, WhatCantBeSimulatedIsListedWithItsReason) {
  const auto files = files_of(R"(
      {"id": "long", "value": 1, "model.sequence": 4096},
      {"id": "unknown", "value": 1, "model.name": "no-such-model"},
      {"id": "told", "skip": "no set-up"},
      {"id": "sound", "value": 1})");
  const auto outcomes = run_cases(files);
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_NE(outcomes[0].skipped, "");
  EXPECT_THAT(outcomes[1].skipped, HasSubstr("no model of this name"));
  EXPECT_EQ(outcomes[2].skipped, "no set-up");
  EXPECT_EQ(outcomes[3].skipped, "");
  const auto summaries = summarize(files, outcomes);
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0].errors.n, 1U);
}

TEST(CaseRun, StopsWhenToldTo) {
  const auto files = files_of(R"({"id": "a", "value": 1}, {"id": "b", "value": 1, "model.micro_batch": 2})");
  EXPECT_THROW(run_cases(files, [](std::size_t, std::size_t) { return false; }), Cancelled);
}

// Fit cases are summed up apart and never judged; --tolerance replaces the file's own for validation cases.
TEST(CaseRun, OnlyValidationCasesAreJudged) {
  const auto files = files_of(R"({"id": "a", "value": 1e9}, {"id": "b", "value": 1e9, "role": "fit"})",
                              R"("tolerance": {"median": 0.05},)");
  const auto outcomes = run_cases(files);
  auto summaries = summarize(files, outcomes);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].role, "validation");
  EXPECT_FALSE(summaries[0].within());
  EXPECT_EQ(summaries[1].role, "fit");
  EXPECT_TRUE(summaries[1].within());
  const Tolerance wide{.median = 2, .p90 = {}, .kendall = {}};
  EXPECT_TRUE(summarize(files, outcomes, &wide)[0].within());
}

TEST(CaseRun, ThePictureHasAPointForEveryCaseThatRan) {
  const auto files = files_of(R"({"id": "a", "value": 2}, {"id": "b", "value": 3, "model.micro_batch": 2},
      {"id": "c", "skip": "no set-up"})");
  const auto outcomes = run_cases(files);
  const std::string svg = scatter_svg("A & B", scatter_panels(outcomes, summarize(files, outcomes)));
  std::size_t points = 0;
  for (std::size_t at = svg.find("r=\"2.6\""); at != std::string::npos; at = svg.find("r=\"2.6\"", at + 1)) ++points;
  EXPECT_EQ(points, 2U);
  EXPECT_THAT(svg, HasSubstr("A &amp; B"));
  EXPECT_THAT(svg, HasSubstr("desk: 2 cases"));
}

}  // namespace
}  // namespace spillway::validation
