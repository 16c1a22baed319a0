#include "planners/layout/emulated_layout.h"

#include <gtest/gtest.h>

#include "base/splitmix64.h"
#include "planners/layout/result_check.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t mib = 1 << 20;

// What a segment of 20 MiB leaves over is closed up: the second lies where the first ends.
TEST(EmulatedLayout, ClosesUpWhatNothingLiesIn) {
  const std::vector<LayoutBuffer> buffers{{.lower = 0, .upper = 4, .size = 11 * mib},
                                          {.lower = 1, .upper = 3, .size = 12 * mib},
                                          {.lower = 2, .upper = 3, .size = 512}};
  const EmulatedReserve reserved = emulated_reserve(buffers);
  EXPECT_EQ(reserved.torch, (12 + 12 + 2) * mib);
  EXPECT_EQ(reserved.expandable, (40 + 2) * mib);
  EXPECT_EQ(height_of(buffers, emulated_layout(buffers)), 23 * mib + 512);
}

// Random steps: legal, and no higher than what either allocator reserves, with however little effort. The second bound
// is the emulated layout's: the step's own is at least as low.
TEST(EmulatedLayout, StepsAreNoHigherThanPyTorchReserves) {
  SplitMix64 random(7);
  for (int round = 0; round < spillway::test::cases(40, 4000); ++round) {
    std::vector<LayoutBuffer> buffers;
    const std::size_t count = 2 + random.next() % 120;
    for (std::size_t i = 0; i < count; ++i) {
      const auto lower = static_cast<std::int64_t>(random.next() % 100);
      const auto life = static_cast<std::int64_t>(1 + random.next() % (random.next() % 4 == 0 ? 200 : 20));
      const auto size =
          static_cast<std::int64_t>(1 + random.next() % (std::uint64_t{1} << (1 + random.next() % 15))) * 512;
      buffers.push_back(
          {.lower = lower, .upper = std::min<std::int64_t>(lower + life, 150), .size = size, .alignment = 512});
    }
    LayoutOptions options;
    options.effort = 1;
    options.threads = 1;
    const LayoutResult laid = lay_out_step(buffers, options);
    check_result(buffers, laid);
    const EmulatedReserve reserved = emulated_reserve(buffers);
    ASSERT_LE(laid.height, reserved.least()) << "round " << round;
    LayoutResult emulated;
    emulated.offsets = emulated_layout(buffers);
    emulated.height = height_of(buffers, emulated.offsets);
    check_result(buffers, emulated);
    ASSERT_LE(laid.height, emulated.height) << "round " << round;
    ASSERT_LE(emulated.height, reserved.least()) << "round " << round;
  }
}

}  // namespace
}  // namespace spillway::planners
