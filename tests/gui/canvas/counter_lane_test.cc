#include "gui/canvas/counter_lane.h"

#include <gtest/gtest.h>

namespace spillway::gui {
namespace {

// Busy in [100, 200) and [250, 300).
CounterLane busy() {
  return CounterLane({"GPU busy", studies::CounterUnit::share, 1, {100, 200, 250, 300}, {1, 0, 1, 0}});
}

TEST(CounterLane, MeansAreThoseOfTheCurve) {
  const CounterLane lane = busy();
  EXPECT_DOUBLE_EQ(lane.mean({0, 300}), 0.5);
  EXPECT_DOUBLE_EQ(lane.mean({150, 250}), 0.5);
  EXPECT_DOUBLE_EQ(lane.mean({300, 400}), 0);
  EXPECT_DOUBLE_EQ(lane.mean({270, 271}), 1);
  EXPECT_DOUBLE_EQ(lane.value_at(99), 0);
  EXPECT_DOUBLE_EQ(lane.value_at(100), 1);
  EXPECT_DOUBLE_EQ(lane.value_at(299), 1);
  EXPECT_DOUBLE_EQ(lane.value_at(300), 0);
}

// Columns of 75: [0, 75) idle, [75, 150) two thirds, [150, 225) two thirds, [225, 300) two thirds. Whatever the width,
// their mean is the whole's: nothing is lost by folding.
TEST(CounterLane, ColumnsAreMeans) {
  const auto columns = busy().fold(TimeAxis({0, 300}, 4));
  ASSERT_EQ(columns.size(), 4U);
  EXPECT_DOUBLE_EQ(columns[0], 0);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_DOUBLE_EQ(columns[i], 50.0 / 75) << i;
  for (const int width : {1, 2, 3, 5, 10, 100, 300}) {
    double sum = 0;
    for (const double column : busy().fold(TimeAxis({0, 300}, width))) sum += column;
    EXPECT_NEAR(sum / width, 0.5, 0.01) << width;
  }
}

TEST(CounterLane, HeightIsTheLimitOrTheMost) {
  EXPECT_DOUBLE_EQ(busy().top(), 1);
  EXPECT_DOUBLE_EQ(CounterLane({"q", studies::CounterUnit::transfers, 0, {0, 5}, {3, 7}}).top(), 7);
  EXPECT_DOUBLE_EQ(CounterLane({"q", studies::CounterUnit::transfers, 0, {}, {}}).top(), 1);
}

}  // namespace
}  // namespace spillway::gui
