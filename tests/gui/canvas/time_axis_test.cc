#include "gui/canvas/time_axis.h"

#include <gtest/gtest.h>

#include "base/number_text.h"

namespace spillway::gui {
namespace {

// x(view.begin) = 0, x(view.end) = width, and time is its inverse to within a pixel's time.
TEST(TimeAxis, MapsViewToPixelsAndBack) {
  const TimeAxis axis({1'000, 21'000}, 200);
  EXPECT_DOUBLE_EQ(axis.x(1'000), 0);
  EXPECT_DOUBLE_EQ(axis.x(21'000), 200);
  EXPECT_DOUBLE_EQ(axis.x(11'000), 100);
  for (int x = 0; x <= 200; ++x) EXPECT_EQ(axis.time(x), 1'000 + x * 100);
}

// The point under the pointer stays where it is, unless that would show what is outside of the whole.
TEST(TimeAxis, ZoomHoldsItsAnchor) {
  const TimeRange whole{0, 1'000'000}, view{400'000, 600'000};
  const TimeRange closer = zoomed(view, whole, 0.5, 0.25);
  EXPECT_EQ(closer.length(), 100'000);
  EXPECT_EQ(closer.begin + closer.length() / 4, view.begin + view.length() / 4);
  EXPECT_EQ(zoomed(view, whole, 100, 0.5), whole);
  EXPECT_EQ(zoomed({0, 200'000}, whole, 2, 1), (TimeRange{0, 400'000}));
}

TEST(TimeAxis, ZoomEndsAtTheNarrowestView) {
  TimeRange view{0, 1'000'000};
  for (int i = 0; i < 100; ++i) view = zoomed(view, {0, 1'000'000}, 0.5, 0.5);
  EXPECT_EQ(view.length(), shortest_view);
}

TEST(TimeAxis, PanStopsAtBothEnds) {
  const TimeRange whole{0, 1'000};
  EXPECT_EQ(panned({100, 300}, whole, -1), (TimeRange{0, 200}));
  EXPECT_EQ(panned({100, 300}, whole, 0.5), (TimeRange{200, 400}));
  EXPECT_EQ(panned({700, 900}, whole, 5), (TimeRange{800, 1'000}));
  EXPECT_EQ(inside({-50, 5'000}, whole), whole);
}

// Steps are 1, 2 or 5 times a power of ten; all ticks lie in the view and none between is left out.
TEST(TimeAxis, TicksAreRoundAndFew) {
  for (const std::int64_t length : {7LL, 1'234LL, 987'654'321LL, 560'393'000'000LL, 9'000'000'000'000'000LL}) {
    const TimeRange view{length / 3, length / 3 + length};
    const auto ticks = TimeAxis(view, 900).ticks(8);
    ASSERT_FALSE(ticks.empty()) << length;
    EXPECT_LE(ticks.size(), 9U);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(ticks[i].at, view.begin);
      EXPECT_LT(ticks[i].at, view.end);
      if (i == 0) continue;
      EXPECT_EQ(ticks[i].at - ticks[i - 1].at, ticks[1].at - ticks[0].at);
      EXPECT_NE(ticks[i].label, ticks[i - 1].label);
    }
  }
}

TEST(TimeAxis, Words) {
  EXPECT_EQ(time_text(560'393'000'000), "560.393 ms");
  EXPECT_EQ(time_text(1'000'000'000'000), "1.000 s");
  EXPECT_EQ(time_text(0), "0");
  EXPECT_EQ(time_text(12'345, false), "12,345 events");
  EXPECT_EQ(bytes_text(Bytes(5'379'000'000)), "5.01 GiB");
  EXPECT_EQ(bytes_text(Bytes(512)), "512 B");
  EXPECT_EQ(bytes_text(Bytes(-3 * 1'048'576)), "-3.00 MiB");
}

}  // namespace
}  // namespace spillway::gui
