#include "base/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace spillway {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

TEST(RoundStep, IsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_DOUBLE_EQ(round_step(0.7), 1);
  EXPECT_DOUBLE_EQ(round_step(1), 1);
  EXPECT_DOUBLE_EQ(round_step(1.3), 2);
  EXPECT_DOUBLE_EQ(round_step(2.1), 5);
  EXPECT_DOUBLE_EQ(round_step(5.5), 10);
  EXPECT_DOUBLE_EQ(round_step(0.031), 0.05);
  EXPECT_DOUBLE_EQ(round_step(3.3e9), 5e9);
  EXPECT_DOUBLE_EQ(round_step(2.0001), 2);  // a thousandth doesn't count
}

TEST(RoundTicks, CoverTheRangeAndNoMore) {
  EXPECT_THAT(round_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(round_ticks(-3, 3, 5), ElementsAre(-2, 0, 2));
  EXPECT_THAT(round_ticks(0.11, 0.19, 2), ElementsAre(DoubleEq(0.15)));
  EXPECT_TRUE(round_ticks(1, 1, 5).empty());
  EXPECT_FALSE(std::signbit(round_ticks(0, 10, 5).front()));  // is written "0"
}

TEST(DecadeTicks, ThinOutWhereTheAxisIsLong) {
  EXPECT_THAT(decade_ticks(1, 60, 2.5), ElementsAre(1, 2, 5, 10, 20, 50));
  EXPECT_THAT(decade_ticks(0.9, 11'000, 2.5), ElementsAre(1, 10, 100, 1000, 10'000));
}

TEST(Axis, RunsEitherWay) {
  const Axis across(0, 10, 100, 200), up(1, 100, 200, 0, Axis::Kind::logarithmic);
  EXPECT_DOUBLE_EQ(across.at(5), 150);
  EXPECT_DOUBLE_EQ(up.at(1), 200);
  EXPECT_DOUBLE_EQ(up.at(10), 100);
  EXPECT_DOUBLE_EQ(up.at(100), 0);
}

TEST(Axis, FromZeroEndsAtARoundNumberAbove) {
  const Axis axis = Axis::from_zero(43, 0, 100, 5);
  EXPECT_DOUBLE_EQ(axis.high(), 50);
  EXPECT_THAT(axis.ticks(5), ElementsAre(0, 10, 20, 30, 40, 50));
}

// Values far apart are told apart by their logarithms; one value alone still has an axis.
TEST(Axis, AroundLeavesRoomAtBothEnds) {
  const Axis near = Axis::around(10, 20, 0, 100), far = Axis::around(1, 1000, 0, 100), one = Axis::around(7, 7, 0, 100);
  for (const auto& [axis, low, high] : {std::tuple(near, 10.0, 20.0), {far, 1.0, 1000.0}, {one, 7.0, 7.0}}) {
    EXPECT_GT(axis.at(low), 0);
    EXPECT_LT(axis.at(high), 100);
  }
  EXPECT_NEAR(near.at(15), 50, 1e-9);
  EXPECT_NEAR(far.at(31.6227766), 50, 1e-6);
  EXPECT_GE(Axis::around(0.1, 1, 0, 100).low(), 0);
}

TEST(TimeTicks, StandInTheUnitThatSuits) {
  const auto ticks = time_ticks(Picos(4'200'000'000), 4);  // 4.2 ms
  ASSERT_EQ(ticks.size(), 3U);
  EXPECT_EQ(ticks[1].at, 2'000'000'000);
  EXPECT_EQ(ticks[1].label, "2");
  EXPECT_EQ(ticks[2].label, "4 ms");
  EXPECT_TRUE(time_ticks(Picos(0), 4).empty());
}

TEST(ByteTicks, CarryTheirUnit) {
  const auto ticks = byte_ticks(Bytes(std::int64_t{3} << 29), 4);  // 1.5 GiB
  ASSERT_EQ(ticks.size(), 4U);
  EXPECT_EQ(ticks[1].at, std::int64_t{1} << 29);
  EXPECT_EQ(ticks[1].label, "0.5 GiB");
}

}  // namespace
}  // namespace spillway
