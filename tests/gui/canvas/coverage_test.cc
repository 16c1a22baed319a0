#include "gui/canvas/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace spillway::gui {
namespace {

constexpr std::uint32_t black = 0xFF000000, white = 0xFFFFFFFF;

std::vector<std::uint32_t> painted(const Coverage& coverage, int width, int height) {
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), black);
  coverage.paint({pixels.data(), width, height, width});
  return pixels;
}

int blue(std::uint32_t pixel) { return static_cast<int>(pixel & 0xFFU); }

// Half a pixel's share is shown as a quarter and half of the rest.
constexpr int half = (255 * 5 + 4) / 8, quarter = 64;

TEST(Coverage, IsTheShareOfEachPixel) {
  Coverage coverage(4, 3);
  coverage.add(0.5, 2.25, 1, 2, white);
  const auto pixels = painted(coverage, 4, 3);
  for (int x = 0; x < 4; ++x) {
    EXPECT_EQ(pixels[static_cast<std::size_t>(x)], black) << "above it";
    EXPECT_EQ(pixels[static_cast<std::size_t>(8 + x)], black) << "below it";
  }
  EXPECT_NEAR(blue(pixels[4]), half, 1);
  EXPECT_EQ(pixels[5], white);
  EXPECT_NEAR(blue(pixels[6]), 255 * (0.25 + 0.75 * 0.25), 1);
  EXPECT_EQ(pixels[7], black);
}

// Boxes that fill a pixel together fill it; of two colours it is the mean.
TEST(Coverage, AddsUp) {
  Coverage coverage(1, 2);
  for (int i = 0; i < 10; ++i) coverage.add(0.1 * i, 0.1 * (i + 1), 0, 1, white);
  coverage.add(0, 1, 1, 1.5, 0xFFFF0000);
  coverage.add(0, 1, 1.5, 2, 0xFF0000FF);
  const auto pixels = painted(coverage, 1, 2);
  EXPECT_GE(blue(pixels[0]), 254);
  EXPECT_NEAR(blue(pixels[1]), 128, 1);
  EXPECT_NEAR(static_cast<int>(pixels[1] >> 16 & 0xFFU), 128, 1);
}

// However small and wherever, a box is seen, and nothing beside it.
TEST(Coverage, TheSmallestIsSeen) {
  for (const double x : {0.0, 0.3, 1.0, 2.9999999, 3.5}) {
    Coverage coverage(4, 1);
    coverage.add(x, x + 1e-12, 0.5, 0.5 + 1e-9, white);
    const auto pixels = painted(coverage, 4, 1);
    int seen = 0;
    for (const std::uint32_t pixel : pixels) seen += pixel != black ? 1 : 0;
    EXPECT_GE(seen, 1) << x;
    EXPECT_LE(seen, 2) << x;
    EXPECT_NEAR(blue(*std::max_element(pixels.begin(), pixels.end())), quarter, 1) << x;
  }
}

// What lies outside is cut off, and leaves nothing behind at the edge.
TEST(Coverage, IsCutAtTheEdges) {
  Coverage coverage(2, 2);
  coverage.add(-5, 0.5, -3, 1, white);
  coverage.add(1, 9, 1, 9, white);
  coverage.add(-3, -1, 0, 2, white);
  const auto pixels = painted(coverage, 2, 2);
  EXPECT_NEAR(blue(pixels[0]), half, 1);
  EXPECT_EQ(pixels[1], black);
  EXPECT_EQ(pixels[2], black);
  EXPECT_EQ(pixels[3], white);
}

}  // namespace
}  // namespace spillway::gui
