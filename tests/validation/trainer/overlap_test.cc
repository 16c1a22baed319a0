#include "validation/trainer/overlap.h"

#include <gtest/gtest.h>

#include "validation/trainer/kernel_cases.h"

namespace spillway::validation {
namespace {

// Transfers [0, 5) and [4, 10) are 10 s of moving; kernels [-1, 4) and [6, 8) cover 4 + 2 of them.
TEST(Overlap, CountsWhatLiesUnderKernels) {
  const Overlap overlap = overlap_of({{4, 10}, {0, 5}}, {{6, 8}, {-1, 4}}, 20);
  EXPECT_DOUBLE_EQ(overlap.transfer_seconds, 10);
  EXPECT_DOUBLE_EQ(overlap.hidden_seconds, 6);
  EXPECT_DOUBLE_EQ(overlap.exposed_seconds(), 4);
  EXPECT_FALSE(overlap.is_hidden());  // 4 of 20 s
}

// A kernel over two transfers covers both; one transfer over three kernels is covered by each.
TEST(Overlap, AnySpanMayCoverSeveral) {
  EXPECT_DOUBLE_EQ(overlap_of({{1, 2}, {3, 4}, {9, 11}}, {{0, 10}}, 10).hidden_seconds, 3);
  EXPECT_DOUBLE_EQ(overlap_of({{0, 10}}, {{1, 2}, {3, 4}, {9, 11}}, 10).hidden_seconds, 3);
}

// 15 us between two kernels are a launch, 30 us are a wait.
TEST(Overlap, ShortPausesAreKernels) {
  EXPECT_NEAR(overlap_of({{0, 1}}, {{0, 0.5}, {0.5 + 15e-6, 1}}, 1).exposed_seconds(), 0, 1e-12);
  EXPECT_NEAR(overlap_of({{0, 1}}, {{0, 0.5}, {0.5 + 30e-6, 1}}, 1).exposed_seconds(), 30e-6, 1e-12);
}

TEST(Overlap, NothingMovesNothingIsExposed) {
  const Overlap none = overlap_of({{3, 3}}, {{0, 1}}, 1);
  EXPECT_DOUBLE_EQ(none.transfer_seconds, 0);
  EXPECT_TRUE(none.is_hidden());
  EXPECT_DOUBLE_EQ(overlap_of({{0, 1}}, {}, 50).exposed_seconds(), 1);
  EXPECT_TRUE(overlap_of({{0, 1}}, {}, 50).is_hidden());  // 2 % of the step
}

// Errors +10 % and -20 %: signed median -5 %, worst 20 %; what measured nothing has no error.
TEST(KernelSummaries, AreByMetric) {
  KernelOutcome first, second;
  first.rows = {{"step_time", "s", 1.0, 1.1}, {"host_read", "B", 0, 0}};
  second.rows = {{"step_time", "s", 1.0, 0.8}, {"host_read", "B", 512, 512}};
  const std::vector<KernelSummary> summaries = summarize({first, second});
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].metric, "step_time");
  EXPECT_NEAR(summaries[0].errors.median, -0.05, 1e-12);
  EXPECT_NEAR(summaries[0].errors.worst_abs, 0.2, 1e-12);
  EXPECT_EQ(summaries[1].errors.n, 1U);
  EXPECT_EQ(summaries[1].errors.worst_abs, 0);
}

TEST(KernelSummaries, VerdictsMustAgree) {
  KernelOutcome outcome;
  EXPECT_TRUE(outcome.verdict_is_right());
  outcome.measured_overlap = Overlap{1, 1, 10};
  outcome.predicted_overlap = Overlap{1, 0, 10};
  EXPECT_FALSE(outcome.verdict_is_right());
  outcome.predicted_overlap->hidden_seconds = 0.9;
  EXPECT_TRUE(outcome.verdict_is_right());
}

}  // namespace
}  // namespace spillway::validation
