#include "traces/formats/kineto/byte_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/splitmix64.h"

namespace spillway::traces {
namespace {

template <typename Block>
class ByteBlockTest : public testing::Test {};

#ifdef __SSE2__
using Blocks = testing::Types<WordBlock, SseBlock>;
#else
using Blocks = testing::Types<WordBlock>;
#endif
TYPED_TEST_SUITE(ByteBlockTest, Blocks);

// Expects the block's matches to be those of `folded` (0x20 or 0) that a look at each byte finds.
template <typename Block>
void expect_same(const std::array<char, Block::size>& bytes, char wanted, bool folded) {
  const Block block(bytes.data());
  typename Block::Matches found = (folded ? block.folded() : block).matches(wanted);
  for (std::size_t i = 0; i < Block::size; ++i) {
    if (static_cast<char>(bytes[i] | (folded ? 0x20 : 0)) != wanted) continue;
    ASSERT_NE(found, 0U) << "byte " << i << " of " << testing::PrintToString(bytes);
    ASSERT_EQ(Block::first(found), i) << testing::PrintToString(bytes);
    found &= found - 1;
  }
  ASSERT_EQ(found, 0U) << testing::PrintToString(bytes);
}

// All pairs of neighbours: a carry out of one byte must not reach the next.
TYPED_TEST(ByteBlockTest, NeighboursDoNotDisturbEachOther) {
  for (const char wanted : {'"', '\\', '{', '}', '\0', '\x80', '\xff'})
    for (int pair = 0; pair < 1 << 16; ++pair) {
      std::array<char, TypeParam::size> bytes;
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 2 == 0 ? pair : pair >> 8);
      for (const bool folded : {false, true}) expect_same<TypeParam>(bytes, wanted, folded);
      if (this->HasFatalFailure()) return;
    }
}

TYPED_TEST(ByteBlockTest, FindsBytesWhereTheyAre) {
  SplitMix64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::array<char, TypeParam::size> bytes;
    // Few values, and such as differ from the wanted one in a bit.
    for (char& byte : bytes) byte = static_cast<char>('{' ^ (1U << random.below(9)));
    bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    for (const bool folded : {false, true}) expect_same<TypeParam>(bytes, '{', folded);
    if (this->HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace spillway::traces
