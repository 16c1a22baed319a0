#include "gui/canvas/owner_stack.h"

#include <gtest/gtest.h>

#include <random>

namespace spillway::gui {
namespace {

// However many changes fall into a column, the most that was held in it shows, and who held it.
TEST(OwnerStack, NoPeakIsLost) {
  std::mt19937 random(7);
  MemoryPicture picture;
  picture.kinds = {"activation", "weight", "temporary"};
  std::array<std::int64_t, 3> held{};
  for (std::int64_t i = 0; i < 5'000; ++i) {
    const std::size_t kind = random() % 3;
    const bool frees = held[kind] > 0 && random() % 2 == 0;
    const std::int64_t bytes = frees ? -held[kind] : static_cast<std::int64_t>(random() % 1'000 + 1);
    held[kind] += bytes;
    picture.changes.push_back({i * 3, kind, bytes});
  }
  const OwnerStack stack(picture);
  const TimeRange view{100, 14'000};
  const TimeAxis axis(view, 97);
  const auto columns = stack.fold(axis);
  ASSERT_EQ(columns.size(), 97U);
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const std::int64_t from = axis.time(static_cast<double>(column));
    const std::int64_t until = column + 1 == columns.size() ? view.end : axis.time(static_cast<double>(column + 1));
    std::int64_t most = OwnerStack::sum(stack.at(column == 0 ? view.begin : from - 1)), total = 0;
    for (const MemoryPicture::Change& change : picture.changes) {
      total += change.bytes;
      if (change.at >= from && change.at < until) most = std::max(most, total);
    }
    EXPECT_EQ(OwnerStack::sum(columns[column]), most) << column;
  }
}

TEST(OwnerStack, OwnersStandInTheirOrder) {
  MemoryPicture picture;
  picture.kinds = {"activation", "optimizer_state", "weight", "input"};
  picture.changes = {{0, 2, 1}, {0, 1, 2}, {5, 0, 4}, {6, 3, 8}, {7, 0, -4}};
  const OwnerStack stack(picture);
  EXPECT_EQ(stack.owners()[0].words, "weight");
  EXPECT_EQ(stack.owners()[1].words, "optimizer state");
  EXPECT_EQ(stack.owners()[3].token, Token::forward);
  EXPECT_EQ(stack.at(6), (OwnerStack::Held{1, 2, 0, 4, 0, 0, 0, 8}));
  EXPECT_EQ(stack.peak(), 15);
  EXPECT_EQ(stack.time_of_peak(), 6);
  EXPECT_EQ(stack.most_held(), (OwnerStack::Held{1, 2, 0, 4, 0, 0, 0, 8}));
  EXPECT_EQ(stack.first_above(6, -1), 5);
  EXPECT_EQ(stack.first_above(100, -1), -1);
}

}  // namespace
}  // namespace spillway::gui
