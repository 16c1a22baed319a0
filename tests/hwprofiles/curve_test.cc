#include "hwprofiles/curve.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// Linear axis: y(1.5) between (1, 10) and (2, 20) is 15.
TEST(Curve, InterpolatesLinearly) {
  const Curve curve({{1, 10}, {2, 20}, {4, 20}}, Curve::Scale::linear);
  EXPECT_DOUBLE_EQ(curve.at(1.5).value, 15);
  EXPECT_FALSE(curve.at(1.5).extrapolated);
  EXPECT_DOUBLE_EQ(curve.at(2).value, 20);
}

// Logarithmic axis: sqrt(1e2 * 1e6) = 1e4 lies half way.
TEST(Curve, InterpolatesInLogX) {
  const Curve curve({{1e2, 0.2}, {1e6, 0.8}}, Curve::Scale::log);
  EXPECT_NEAR(curve.at(1e4).value, 0.5, 1e-12);
}

// Outside the table the end value holds and is marked; the ends themselves are inside.
TEST(Curve, ClampsAndSaysSo) {
  const Curve curve({{1, 3}, {10, 7}}, Curve::Scale::log);
  EXPECT_DOUBLE_EQ(curve.at(0.1).value, 3);
  EXPECT_TRUE(curve.at(0.1).extrapolated);
  EXPECT_DOUBLE_EQ(curve.at(11).value, 7);
  EXPECT_TRUE(curve.at(11).extrapolated);
  EXPECT_FALSE(curve.at(1).extrapolated);
  EXPECT_FALSE(curve.at(10).extrapolated);
}

TEST(Curve, RefusesUnsoundTables) {
  using Points = std::vector<CurvePoint>;
  EXPECT_THROW(Curve(Points{}, Curve::Scale::log), InputError);
  EXPECT_THROW(Curve(Points{{2, 1}, {1, 1}}, Curve::Scale::log), InputError);
  EXPECT_THROW(Curve(Points{{1, 1}, {1, 1}}, Curve::Scale::linear), InputError);
  EXPECT_THROW(Curve(Points{{0, 1}}, Curve::Scale::log), InputError);
  EXPECT_THROW(Curve(Points{{1, -1}}, Curve::Scale::log), InputError);
  EXPECT_THROW(Curve(Points{{1, std::numeric_limits<double>::quiet_NaN()}}, Curve::Scale::log), InputError);
}

// Between group sizes 2 and 8, size 4 is half way in the logarithm.
TEST(CurveFamily, InterpolatesBetweenMembers) {
  const CurveFamily family({{2, Curve({{1, 10}}, Curve::Scale::log)}, {8, Curve({{1, 30}}, Curve::Scale::log)}});
  EXPECT_NEAR(family.at(4, 1).value, 20, 1e-12);
  EXPECT_DOUBLE_EQ(family.at(8, 1).value, 30);
  EXPECT_TRUE(family.at(16, 1).extrapolated);
  EXPECT_DOUBLE_EQ(family.at(16, 1).value, 30);
  EXPECT_TRUE(family.at(1, 1).extrapolated);
}

}  // namespace
}  // namespace spillway::hwprofiles
