#include "base/address_map.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

namespace spillway {
namespace {

// The same as an ordered map, whatever comes and goes: few addresses, so that runs of the table join and part.
TEST(AddressMap, DoesWhatAnOrderedMapDoes) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    AddressMap<int> table;
    std::map<std::uint64_t, int> ordered;
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t address = random() % 400 * 512;
      const auto before = ordered.find(address);
      if (random() % 2 == 0) {
        const auto [value, is_new] = table.try_emplace(address);
        EXPECT_EQ(is_new, before == ordered.end());
        EXPECT_EQ(*value, is_new ? 0 : before->second);
        *value = step;
        ordered[address] = step;
      } else {
        EXPECT_EQ(table.take(address), before == ordered.end() ? std::nullopt : std::optional(before->second));
        ordered.erase(address);
      }
      const std::uint64_t other = random() % 400 * 512;
      const auto expected = ordered.find(other);
      const int* found = table.find(other);
      ASSERT_EQ(found != nullptr, expected != ordered.end());
      if (found != nullptr) {
        EXPECT_EQ(*found, expected->second);
      }
      ASSERT_EQ(table.size(), ordered.size());
    }
    const auto entries = table.sorted();
    EXPECT_TRUE(std::equal(entries.begin(), entries.end(), ordered.begin(), ordered.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
    table.clear();
    EXPECT_EQ(table.find(0), nullptr);
    EXPECT_FALSE(table.erase(0));
  }
}

}  // namespace
}  // namespace spillway
