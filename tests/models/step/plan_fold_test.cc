// A plan of many micro-batches is one of few with periods put in, or is none.
#include "models/step/plan_fold.h"

#include <gtest/gtest.h>

#include "models/pipeline/named_schedules.h"

namespace spillway::models::plan_fold {
namespace {

PipelinePlan plan(const char* schedule, std::int64_t devices, std::int64_t micro_batches) {
  return build_schedule(schedule, {.devices = devices, .micro_batches = micro_batches});
}

// The whole order, written out from the part and the fold.
std::vector<PipelineOp> unfolded(const std::vector<PipelineOp>& shown, const PlanFold::Device& device,
                                 std::int64_t times, std::int64_t period) {
  const auto later = [](PipelineOp op, std::int64_t micro_batches) {
    op.pass.micro_batch += static_cast<std::int32_t>(micro_batches);
    return op;
  };
  const std::size_t end = device.first + device.periods * device.length;
  std::vector<PipelineOp> order(shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(end));
  for (std::int64_t k = 1; k <= times; ++k)
    for (std::size_t i = end - device.length; i < end; ++i) order.push_back(later(shown[i], k * period));
  for (std::size_t i = end; i < shown.size(); ++i) order.push_back(later(shown[i], times * period));
  return order;
}

void expect_folds(const char* schedule, std::int64_t devices, std::int64_t many, std::int64_t few,
                  std::int64_t period) {
  SCOPED_TRACE(schedule);
  const PipelinePlan whole = plan(schedule, devices, many), shown = plan(schedule, devices, few);
  const std::optional<PlanFold> fold = fold_of(whole, shown, period, 3);
  ASSERT_TRUE(fold.has_value());
  EXPECT_EQ(fold->times * period, many - few);
  for (std::size_t d = 0; d < whole.compute.size(); ++d) {
    const std::vector<PipelineOp> order = unfolded(shown.compute[d], fold->devices[d], fold->times, period);
    ASSERT_EQ(order.size(), whole.compute[d].size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(order[i].kind, whole.compute[d][i].kind);
      EXPECT_EQ(order[i].pass, whole.compute[d][i].pass);
    }
    EXPECT_GE(shown.compute[d][fold->devices[d].first].pass.micro_batch, 3);
  }
}

TEST(PlanFold, SchedulesThatRepeat) {
  expect_folds("1f1b", 4, 100, 20, 1);
  expect_folds("eager-1f1b", 4, 100, 30, 1);
  expect_folds("zb-h1", 4, 64, 30, 1);
  expect_folds("interleaved", 4, 96, 40, 4);
}

// All forwards come before all backwards: one more micro-batch is put in at two places.
TEST(PlanFold, GPipeDoesNot) { EXPECT_FALSE(fold_of(plan("gpipe", 4, 100), plan("gpipe", 4, 20), 1, 3).has_value()); }

TEST(PlanFold, TooFewToSeeARepetition) {
  EXPECT_FALSE(fold_of(plan("1f1b", 8, 100), plan("1f1b", 8, 9), 1, 3).has_value());
}

TEST(PlanFold, AnotherOrderIsFound) {
  const PipelinePlan whole = plan("1f1b", 2, 60), shown = plan("1f1b", 2, 20);
  PipelinePlan other = whole;
  std::swap(other.compute[1][50], other.compute[1][51]);
  EXPECT_TRUE(fold_of(whole, shown, 1, 3).has_value());
  EXPECT_FALSE(fold_of(other, shown, 1, 3).has_value());
}

}  // namespace
}  // namespace spillway::models::plan_fold
