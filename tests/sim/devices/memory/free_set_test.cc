#include "sim/devices/memory/free_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace spillway::sim {
namespace {

// Against std::set under random inserts, erases and replacements, growing to thousands and shrinking to nothing, twice:
// the same content in the same order, the same lower bounds, backwards as forwards.
TEST(FreeSet, AgreesWithAnOrderedSet) {
  std::mt19937 random(5);
  FreeSet set;
  std::set<FreeBlock> expected;
  const auto draw = [&] {
    return FreeBlock{static_cast<std::int64_t>(random() % 3), Bytes(static_cast<std::int64_t>(random() % 200)),
                     Addr(random() % 5000), BlockId{static_cast<std::uint32_t>(random() % 2)}};
  };
  for (int step = 0; step < 40000; ++step) {
    const bool growing = step % 20000 < 12000;
    if (random() % 10 < (growing ? 7U : 2U)) {
      const FreeBlock block = draw();
      if (expected.insert(block).second) set.insert(block);
    } else if (!expected.empty()) {
      auto at = expected.lower_bound(draw());
      if (at == expected.end()) at = expected.begin();
      ASSERT_TRUE(set.contains(*at));
      const FreeBlock old = *at, block = draw();
      const bool replaces = random() % 3 == 0 && !expected.contains(block);
      if (replaces)
        set.replace(set.place_of(old), block);
      else
        set.erase(old);
      ASSERT_FALSE(set.contains(old));
      expected.erase(at);
      if (replaces) expected.insert(block);
    }
    ASSERT_EQ(set.size(), expected.size());
    const FreeBlock key = draw();
    const auto found = set.lower_bound(key.stream, key.size);
    const auto wanted = expected.lower_bound({key.stream, key.size, Addr{0}, BlockId{0}});
    ASSERT_EQ(found == set.end(), wanted == expected.end());
    if (wanted != expected.end()) {
      ASSERT_EQ(*found, *wanted);
    }
    if (step % 500 != 0) continue;
    ASSERT_TRUE(std::equal(set.begin(), set.end(), expected.begin(), expected.end()));
    ASSERT_TRUE(std::equal(std::make_reverse_iterator(set.end()), std::make_reverse_iterator(set.begin()),
                           expected.rbegin(), expected.rend()));
  }
}

}  // namespace
}  // namespace spillway::sim
