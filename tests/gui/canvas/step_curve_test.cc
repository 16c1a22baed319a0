#include "gui/canvas/step_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace spillway::gui {
namespace {

// Each column has the least and the most of what is held in it: compared with a walk over every point.
TEST(StepCurve, ColumnsKeepEveryPeakAndValley) {
  std::mt19937 random(1);
  for (const int points : {1, 5, 63, 64, 65, 20'000}) {
    StepCurve curve;
    std::vector<std::pair<std::int64_t, std::int64_t>> all;
    std::int64_t at = 100;
    for (int i = 0; i < points; ++i) {
      at += static_cast<std::int64_t>(random() % 4);
      const auto value = static_cast<std::int64_t>(random() % 1'000);
      curve.add(at, value);
      all.emplace_back(at, value);
    }
    const TimeRange view{90 + at / 10, at + 50};
    const TimeAxis axis(view, 137);
    const auto columns = curve.fold(axis);
    ASSERT_EQ(columns.size(), 137U);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::int64_t begin = c == 0 ? view.begin : axis.time(static_cast<double>(c));
      const std::int64_t end = c + 1 == columns.size() ? view.end : axis.time(static_cast<double>(c + 1));
      std::int64_t held = 0, low = 0, high = 0;
      bool any = false;
      for (const auto& [when, value] : all) {
        const bool before = when <= view.begin || when < begin;
        if (before) held = value;
        if (before || when >= end) continue;
        low = any ? std::min(low, value) : value;
        high = any ? std::max(high, value) : value;
        any = true;
      }
      EXPECT_EQ(columns[c].low, any ? std::min(low, held) : held) << points << " " << c;
      EXPECT_EQ(columns[c].high, any ? std::max(high, held) : held) << points << " " << c;
    }
  }
}

TEST(StepCurve, ValuesAndPeak) {
  StepCurve curve;
  EXPECT_EQ(curve.value_at(5), 0);
  curve.add(10, 3);
  curve.add(20, 9);
  curve.add(20, 4);
  EXPECT_EQ(curve.value_at(9), 0);
  EXPECT_EQ(curve.value_at(10), 3);
  EXPECT_EQ(curve.value_at(20), 4);
  EXPECT_EQ(curve.peak(), 9);
  EXPECT_EQ(curve.time_of_peak(), 20);
}

}  // namespace
}  // namespace spillway::gui
