#include "gui/canvas/address_picture.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace spillway::gui {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

MemoryPicture two_segments() {
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 100;
  picture.blocks = {{0, 50, gib, Bytes(1 << 20), 0},
                    {50, 100, gib, Bytes(1 << 19), 1},
                    {20, 100, gib + (1 << 20), Bytes(1 << 20), 1},
                    {0, 100, 9 * gib, Bytes(1 << 21), 2}};
  picture.kinds = {"a", "b", "c"};
  return picture;
}

// Used addresses lie one after the other: 2 MiB, a seam, 2 MiB.
TEST(AddressMap, UnusedAddressesAreSqueezedOut) {
  const AddressMap map(two_segments());
  EXPECT_EQ(map.height(), 4 << 20);
  EXPECT_EQ(map.seams(), (std::vector<std::int64_t>{2 << 20}));
  EXPECT_EQ(map.blocks()[0].low, 0);
  EXPECT_EQ(map.blocks()[2].low, 1 << 20);
  EXPECT_EQ(map.blocks()[3].low, 2 << 20);
}

TEST(AddressMap, FindsTheBlockAtAPlaceAndTime) {
  const AddressMap map(two_segments());
  EXPECT_EQ(map.at(10, 100), 0);
  EXPECT_EQ(map.at(60, 100), 1);
  EXPECT_EQ(map.at(60, 1 << 19), -1);
  EXPECT_EQ(map.at(10, 1 << 20), -1);
  EXPECT_EQ(map.at(20, 1 << 20), 2);
  EXPECT_EQ(map.at(99, 3 << 20), 3);
}

// One pixel per MiB and per 10 units of time: every pixel has the colour of its block, the lowest address at the
// bottom; half a pixel high, a block is five eighths of its colour.
TEST(AddressMap, PixelsAreTheBlocks) {
  const AddressMap map(two_segments());
  std::vector<std::uint32_t> pixels(40, 0);
  map.draw({pixels.data(), 10, 4, 10}, {0, 100}, {0, 4 << 20}, {1, 0xFF0000A0, 3});
  const auto pixel = [&](int x, int y) {
    return pixels[static_cast<std::size_t>(y) * 10 + static_cast<std::size_t>(x)];
  };
  for (int x = 0; x < 10; ++x) {
    EXPECT_EQ(pixel(x, 0), 3U);
    EXPECT_EQ(pixel(x, 1), 3U);
    EXPECT_EQ(pixel(x, 2), x < 2 ? 0U : 0xFF0000A0U);
    EXPECT_EQ(pixel(x, 3), x < 5 ? 1U : 0xFF000064U);
  }
}

// Far smaller than a pixel: it is seen, and it hides no block that is larger.
TEST(AddressMap, SmallBlocksShowButHideNothing) {
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 100;
  picture.blocks = {{0, 100, gib, Bytes(10 << 20), 0}, {40, 41, gib + (10 << 20), Bytes(512), 1}};
  picture.kinds = {"large", "small"};
  std::vector<std::uint32_t> pixels(110, 0);
  AddressMap(picture).draw({pixels.data(), 10, 11, 10}, {0, 100}, {0, 11 << 20}, {0xFF0000FF, 0xFFFFFFFF});
  EXPECT_EQ(pixels[4], 0xFF404040U) << "a quarter";
  for (std::size_t i = 10; i < pixels.size(); ++i) EXPECT_EQ(pixels[i], 0xFF0000FFU);
}

// A hundredth of the addresses, spread over all of them, is a tint of all; one without gaps is whole.
TEST(AddressMap, ScatteredBlocksAreNoWall) {
  MemoryPicture picture;
  picture.begin = 0;
  picture.end = 100;
  picture.kinds = {"scattered", "dense"};
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    picture.blocks.push_back({0, 100, gib + i * 1'000'000, Bytes(10'000), 0});
    picture.blocks.push_back({0, 100, 3 * gib + i * 1'000'000, Bytes(1'000'000), 1});
  }
  std::sort(picture.blocks.begin(), picture.blocks.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  std::vector<std::uint32_t> pixels(80, 0xFF000000U);
  const AddressMap map(picture);
  map.draw({pixels.data(), 2, 40, 2}, {0, 100}, {0, map.height()}, {0xFFFFFFFF, 0xFFFFFFFF});
  for (std::size_t y = 1; y < 39; ++y) {
    if (y == 19 || y == 20) continue;  // the seam is there
    EXPECT_NEAR(static_cast<double>(pixels[2 * y] & 0xFFU), y < 20 ? 255 : 66, 2) << y;
  }
}

TEST(AddressMap, DrawsOnlyWhatIsInView) {
  const AddressMap map(two_segments());
  std::vector<std::uint32_t> pixels(4, 0);
  map.draw({pixels.data(), 2, 2, 2}, {60, 80}, {2 << 20, 4 << 20}, {1, 2, 3});
  EXPECT_EQ(pixels, (std::vector<std::uint32_t>{3, 3, 3, 3}));
}

}  // namespace
}  // namespace spillway::gui
