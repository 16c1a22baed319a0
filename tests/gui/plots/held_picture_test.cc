#include "gui/plots/held_picture.h"

#include <gtest/gtest.h>

namespace spillway::gui {
namespace {

studies::HeldNode node(const char* name, std::int64_t bytes, std::vector<studies::HeldNode> children = {}) {
  return {name, Bytes(bytes), 1, -1, std::move(children)};
}

// 600: a holds 400 as 300 + 100, b 200.
studies::HeldNode example() {
  return node("all", 600, {node("a", 400, {node("a1", 300), node("a2", 100)}), node("b", 200)});
}

const HeldCell* cell_of(const std::vector<HeldCell>& cells, const std::string& name) {
  for (const HeldCell& cell : cells)
    if (cell.node != nullptr && cell.node->name == name) return &cell;
  return nullptr;
}
double area(const QRectF& rect) { return rect.width() * rect.height(); }

// Areas are as the bytes on each level, and fill what they lie in.
TEST(HeldPicture, AreasAreAsTheBytes) {
  const auto root = example();
  const auto cells = held_cells(root, HeldShape::treemap, QRectF(10, 20, 600, 400));
  const HeldCell *const a = cell_of(cells, "a"), *const b = cell_of(cells, "b"), *const a1 = cell_of(cells, "a1"),
                        *const a2 = cell_of(cells, "a2");
  ASSERT_TRUE(a != nullptr && b != nullptr && a1 != nullptr && a2 != nullptr);
  EXPECT_NEAR(area(a->rect), 160'000, 1);
  EXPECT_NEAR(area(b->rect), 80'000, 1);
  EXPECT_NEAR(area(a1->rect) / area(a2->rect), 3, 1e-6);
  EXPECT_TRUE(a->rect.contains(a1->rect) && a->rect.contains(a2->rect));
  EXPECT_FALSE(a->rect.adjusted(1, 1, -1, -1).intersects(b->rect.adjusted(1, 1, -1, -1)));
  EXPECT_TRUE(a->is_open);
  EXPECT_EQ(cells[*held_at(cells, a1->rect.center())].node, a1->node);
  EXPECT_EQ(cells[*held_at(cells, b->rect.center())].node, b->node);
  EXPECT_FALSE(held_at(cells, QPointF(0, 0)).has_value());
}

// Files and calls have no owner's colour; each is seen all the same.
TEST(HeldPicture, NoCellIsOfTheBackground) {
  const auto root = example();
  for (const Theme* const theme : {&light_theme(), &dark_theme()}) {
    const auto cells = held_cells(root, HeldShape::treemap, QRectF(0, 0, 600, 400));
    const QImage image = paint_held(cells, {QSize(600, 400), 1, std::nullopt}, *theme);
    for (const HeldCell& cell : cells)
      EXPECT_NE(image.pixelColor((cell.rect.bottomRight() - QPointF(6, 6)).toPoint()), theme->background)
          << cell.node->name;
  }
}

// Of flames, widths are.
TEST(HeldPicture, FlamesAreAsWideAsTheBytes) {
  const auto root = example();
  const auto cells = held_cells(root, HeldShape::flame, QRectF(0, 0, 600, 200));
  ASSERT_EQ(cells.size(), 5U);
  EXPECT_DOUBLE_EQ(cell_of(cells, "all")->rect.width(), 600);
  EXPECT_DOUBLE_EQ(cell_of(cells, "a")->rect.width(), 400);
  EXPECT_DOUBLE_EQ(cell_of(cells, "a2")->rect.left(), 300);
  EXPECT_DOUBLE_EQ(cell_of(cells, "b")->rect.left(), 400);
  EXPECT_GT(cell_of(cells, "a1")->rect.top(), cell_of(cells, "a")->rect.top());
}

// What is too small is summed up, so that nothing is missing from the whole.
TEST(HeldPicture, SmallOnesAreTogether) {
  std::vector<studies::HeldNode> children{node("large", 1'000'000)};
  for (int i = 0; i < 1'000; ++i) children.push_back(node("small", 1));
  const auto root = node("all", 1'001'000, std::move(children));
  const auto cells = held_cells(root, HeldShape::treemap, QRectF(0, 0, 300, 200));
  ASSERT_EQ(cells.size(), 2U);
  EXPECT_EQ(cells[1].node, nullptr);
  EXPECT_EQ(cells[1].bytes, Bytes(1'000));
  const auto image = paint_held(cells, {QSize(300, 200), 2, std::size_t{0}}, light_theme());
  EXPECT_EQ(image.width(), 600);
  std::vector<studies::HeldNode> thin{node("wide", 500)};
  for (int i = 0; i < 100; ++i) thin.push_back(node("thin", 5));
  const auto flame_root = node("all", 1'000, std::move(thin));
  const auto flames = held_cells(flame_root, HeldShape::flame, QRectF(0, 0, 300, 200));
  ASSERT_EQ(flames.size(), 3U);
  EXPECT_EQ(flames[2].node, nullptr);
  EXPECT_EQ(flames[2].bytes, Bytes(500));
  EXPECT_DOUBLE_EQ(flames[2].rect.left(), 150);
  EXPECT_DOUBLE_EQ(flames[2].rect.width(), 150);
  EXPECT_TRUE(held_cells(node("none", 0), HeldShape::treemap, QRectF(0, 0, 300, 200)).empty());
}

}  // namespace
}  // namespace spillway::gui
