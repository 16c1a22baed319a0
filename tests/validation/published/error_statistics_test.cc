#include "validation/published/error_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/quantile.h"

namespace spillway::validation {
namespace {

// Position (n - 1) q between order statistics: of 1..10, q = 0.9 is 1 + 9 * 0.9 = 9.1, q = 0.5 is 5.5.
TEST(Quantile, IsLinearBetweenOrderStatistics) {
  const std::vector<double> values = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 5.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.9), 9.1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 10);
  EXPECT_DOUBLE_EQ(quantile({4}, 0.9), 4);
}

TEST(KendallTau, OfOrdersWithoutTies) {
  const std::vector<double> up = {1, 2, 3, 4}, down = {4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(kendall_tau(up, up), 1);
  EXPECT_DOUBLE_EQ(kendall_tau(up, down), -1);
  // One of six pairs is out of order: (5 - 1) / 6.
  const std::vector<double> one_swap = {1, 2, 4, 3};
  EXPECT_DOUBLE_EQ(kendall_tau(up, one_swap), 4.0 / 6);
}

// tau-b with one tie in b: pairs 6, score 5, untied 6 and 5, so 5 / sqrt(30).
TEST(KendallTau, CountsTiesOnEachSide) {
  const std::vector<double> a = {1, 2, 3, 4}, b = {1, 2, 2, 3}, flat = {7, 7, 7, 7};
  EXPECT_DOUBLE_EQ(kendall_tau(a, b), 5 / std::sqrt(30.0));
  EXPECT_DOUBLE_EQ(kendall_tau(a, flat), 0);
  // One tie of six pairs: an order without ties reaches 5 / sqrt(5 * 6).
  EXPECT_DOUBLE_EQ(kendall_ceiling(std::vector<double>{1, 2, 2, 3}), std::sqrt(5.0 / 6));
  EXPECT_DOUBLE_EQ(kendall_tau(std::vector<double>{1, 2, 2, 3}, std::vector<double>{1, 2, 3, 4}), std::sqrt(5.0 / 6));
  EXPECT_DOUBLE_EQ(kendall_ceiling(std::vector<double>{7}), 1);
}

// Errors +10 %, -20 %, 0, +30 %: absolute sorted 0, 0.1, 0.2, 0.3; signed sorted -0.2, 0, 0.1, 0.3.
TEST(ErrorStatistics, OfKnownErrors) {
  const std::vector<double> measured = {100, 10, 1, 1000}, predicted = {110, 8, 1, 1300};
  const ErrorStatistics errors = error_statistics(measured, predicted);
  EXPECT_EQ(errors.n, 4U);
  EXPECT_NEAR(errors.median_abs, 0.15, 1e-12);
  EXPECT_NEAR(errors.p90_abs, 0.2 + 0.7 * 0.1, 1e-12);
  EXPECT_NEAR(errors.worst_abs, 0.3, 1e-12);
  EXPECT_NEAR(errors.mean_abs, 0.15, 1e-12);
  EXPECT_NEAR(errors.median, 0.05, 1e-12);
  EXPECT_DOUBLE_EQ(errors.kendall_tau, 1);
}

TEST(ErrorStatistics, OfNothingIsZero) { EXPECT_EQ(error_statistics({}, {}).n, 0U); }

}  // namespace
}  // namespace spillway::validation
