#include "gui/canvas/span_lane.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace spillway::gui {
namespace {

SpanLane random_lane(std::size_t count, std::int64_t longest, std::uint32_t seed) {
  std::mt19937 random(seed);
  SpanLane lane;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at += static_cast<std::int64_t>(random() % 7 == 0 ? random() % static_cast<std::uint32_t>(longest) : random() % 20);
    const std::int64_t end = at + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(longest));
    lane.add(at, end, static_cast<std::uint8_t>(random() % most_span_colors), static_cast<std::uint32_t>(i));
    at = end;
  }
  return lane;
}

// Pieces lie in the picture, in order, without overlap.
void expect_orderly(const std::vector<FoldedPiece>& pieces, double width) {
  double reached = 0;
  for (const FoldedPiece& piece : pieces) {
    EXPECT_GE(piece.x, reached);
    EXPECT_GT(piece.width, 0);
    reached = piece.x + piece.width;
  }
  EXPECT_LE(reached, width + 1e-6);
}

// Every span of two pixels and more that is whole in the view is a block of its own, with its colour and place.
TEST(SpanLane, LongSpansAreBlocks) {
  const SpanLane lane = random_lane(3'000, 1'000, 1);
  const TimeRange view{lane.begin(100), lane.end(2'900)};
  for (const double width : {100.0, 1'920.0, 40'000.0}) {
    const TimeAxis axis(view, width);
    std::vector<FoldedPiece> pieces;
    lane.fold(axis, pieces);
    expect_orderly(pieces, width);
    std::vector<char> seen(lane.size(), 0);
    for (const FoldedPiece& piece : pieces)
      if (piece.span >= 0) {
        const auto i = static_cast<std::size_t>(piece.span);
        seen[i] = 1;
        EXPECT_EQ(piece.color, lane.color(i));
        EXPECT_NEAR(piece.x + piece.width, axis.x(lane.end(i)), 1e-6);
      }
    // A pixel may be taken by the run before.
    for (std::size_t i = 100; i < 2'900; ++i)
      if (axis.x(lane.end(i)) - axis.x(lane.begin(i)) >= 3) {
        EXPECT_TRUE(seen[i]) << i << " at width " << width;
      }
  }
}

// A column of short spans is coloured by what fills most of it: compared with a count of every span. 250 spans a
// column, so 16 of them, which may count with its neighbour, are 6 % of it.
TEST(SpanLane, RunsHaveTheColourThatFillsMost) {
  const SpanLane lane = random_lane(200'000, 30, 2);
  const TimeAxis axis({0, lane.end(lane.size() - 1)}, 800);
  std::vector<FoldedPiece> pieces;
  lane.fold(axis, pieces);
  expect_orderly(pieces, 800);
  std::vector<std::array<double, most_span_colors>> columns(800);
  for (std::size_t i = 0; i < lane.size(); ++i)
    columns[static_cast<std::size_t>(axis.x(lane.begin(i)))][lane.color(i)] +=
        static_cast<double>(lane.end(i) - lane.begin(i));
  std::size_t right = 0, all = 0;
  for (const FoldedPiece& piece : pieces) {
    EXPECT_LT(piece.span, 0);
    for (int x = static_cast<int>(piece.x); x < static_cast<int>(piece.x + piece.width); ++x) {
      const auto& parts = columns[static_cast<std::size_t>(x)];
      const double most = *std::max_element(parts.begin(), parts.end());
      ++all;
      right += parts[piece.color] >= 0.8 * most ? 1 : 0;
    }
  }
  EXPECT_EQ(all, 800U);
  EXPECT_GE(right, 790U);
}

// However many spans there are, a column is at most one piece.
TEST(SpanLane, NoMorePiecesThanColumns) {
  const SpanLane lane = random_lane(500'000, 50, 3);
  std::vector<FoldedPiece> pieces;
  lane.fold(TimeAxis({0, lane.end(lane.size() - 1)}, 300), pieces);
  EXPECT_LE(pieces.size(), 300U);
  pieces.clear();
  lane.fold(TimeAxis({0, lane.end(lane.size() - 1) / 1'000}, 300), pieces);
  EXPECT_LE(pieces.size(), 600U);
}

// busy(first, last) is the sum of the spans' lengths, whatever the places in the sums that are kept.
TEST(SpanLane, BusyIsTheSum) {
  const SpanLane lane = random_lane(1'000, 100, 4);
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t a = random() % 1'001, b = random() % 1'001;
    std::int64_t sum = 0;
    for (std::size_t i = std::min(a, b); i < std::max(a, b); ++i) sum += lane.end(i) - lane.begin(i);
    EXPECT_EQ(lane.busy(std::min(a, b), std::max(a, b)), sum);
  }
}

TEST(SpanLane, FindsWhatIsUnderThePointer) {
  SpanLane lane;
  lane.add(10, 20, 0, 7);
  lane.add(30, 31, 1, 8);
  EXPECT_EQ(lane.at(10), 0);
  EXPECT_EQ(lane.at(19), 0);
  EXPECT_EQ(lane.at(20), -1);
  EXPECT_EQ(lane.at(28, 3), 1);
  EXPECT_EQ(lane.at(33, 3), 1);
  EXPECT_EQ(lane.at(50, 3), -1);
  EXPECT_EQ(lane.within({15, 30}), (std::array<std::size_t, 2>{0, 1}));
  EXPECT_EQ(lane.within({20, 30}), (std::array<std::size_t, 2>{1, 1}));
  EXPECT_EQ(lane.within({0, 100}), (std::array<std::size_t, 2>{0, 2}));
}

TEST(SpanLane, EmptyLaneHasNothing) {
  const SpanLane lane;
  std::vector<FoldedPiece> pieces;
  lane.fold(TimeAxis({0, 100}, 10), pieces);
  EXPECT_TRUE(pieces.empty());
  EXPECT_EQ(lane.at(5, 100), -1);
}

}  // namespace
}  // namespace spillway::gui
