#include "base/string_pool.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace spillway {
namespace {

// Of all lengths, with bytes of all values, and one that is longer than a block.
std::vector<std::string> texts() {
  std::vector<std::string> list = {""};
  for (int i = 1; i < 20000; ++i)
    list.push_back(std::string(static_cast<std::size_t>(i % 37), 'x') + std::to_string(i));
  list.emplace_back("\0", 1);
  list.emplace_back("\0\0", 2);
  list.emplace_back("12345678");
  list.emplace_back("12345678\0", 9);
  list.emplace_back(100000, 'y');
  list.emplace_back(100001, 'y');
  return list;
}

TEST(StringPool, NumbersTextsInTheOrderOfFirstSight) {
  StringPool pool;
  const std::vector<std::string> list = texts();
  for (std::size_t i = 0; i < list.size(); ++i) ASSERT_EQ(pool.intern(list[i]), StringId(i)) << i;
  for (std::size_t i = list.size(); i-- > 0;) {
    ASSERT_EQ(pool.intern(list[i]), StringId(i)) << i;
    ASSERT_EQ(pool.text(StringId(i)), list[i]) << i;
  }
  EXPECT_EQ(pool.size(), list.size());
}

TEST(StringPool, CopiesAreIndependentAndMovesKeepTextsInPlace) {
  StringPool pool;
  const std::string_view first = pool.text(pool.intern("first"));
  StringPool copy = pool;
  EXPECT_EQ(copy.intern("second"), StringId(2));
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_EQ(pool.intern("third"), StringId(2));
  StringPool moved = std::move(pool);
  EXPECT_EQ(moved.text(StringId(1)).data(), first.data());
  EXPECT_EQ(moved.intern("third"), StringId(2));
  EXPECT_EQ(moved.intern("fourth"), StringId(3));
  copy = moved;
  EXPECT_EQ(copy.text(StringId(3)), "fourth");
}

}  // namespace
}  // namespace spillway
