#include "planners/layout/best_inside.h"

#include <gtest/gtest.h>

#include "base/splitmix64.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

std::int32_t looked_through(const std::vector<SectionSpan>& lives, const std::vector<float>& keys,
                            const std::vector<bool>& gone, SectionSpan stretch) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (gone[i] || lives[i].lower < stretch.lower || lives[i].upper > stretch.upper) continue;
    const auto b = static_cast<std::size_t>(best);
    const bool is_ahead = best < 0 || keys[i] > keys[b] || (keys[i] == keys[b] && lives[i].lower >= lives[b].lower);
    if (is_ahead) best = static_cast<std::int32_t>(i);
  }
  return best;
}

// Random lives, few different keys, some taken out in between, and everything there again behind a reset.
TEST(BestInside, IsWhatLookingThroughAllFinds) {
  SplitMix64 random(11);
  for (int round = 0; round < spillway::test::cases(60, 6000); ++round) {
    std::vector<SectionSpan> lives(random.next() % 70);
    for (SectionSpan& life : lives) {
      life.lower = static_cast<std::int32_t>(random.next() % 40);
      life.upper = life.lower + 1 + static_cast<std::int32_t>(random.next() % (random.next() % 3 == 0 ? 40 : 4));
    }
    BestInside tree(lives);
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<float> keys(lives.size());
      for (float& key : keys) key = static_cast<float>(random.next() % 9) - 4;
      std::vector<bool> gone(lives.size());
      tree.reset(keys);
      for (int look = 0; look < 150; ++look) {
        const auto lower = static_cast<std::int32_t>(random.next() % 40);
        const SectionSpan stretch{lower, lower + 1 + static_cast<std::int32_t>(random.next() % 45)};
        const std::int32_t found = tree.find(stretch);
        ASSERT_EQ(found, looked_through(lives, keys, gone, stretch)) << "round " << round;
        if (found < 0 || random.next() % 2 == 0) continue;
        tree.remove(found);
        gone[static_cast<std::size_t>(found)] = true;
      }
    }
  }
}

}  // namespace
}  // namespace spillway::planners
