#include "base/amount.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway {
namespace {

TEST(Amount, IsInBaseUnitsUnlessItSaysOtherwise) {
  EXPECT_DOUBLE_EQ(parse_amount("0.02", Dimension::time), 0.02);
  EXPECT_DOUBLE_EQ(parse_amount("20 ms", Dimension::time), 0.02);
  EXPECT_DOUBLE_EQ(parse_amount("3 GB/s", Dimension::rate), 3e9);
  EXPECT_THROW(parse_amount("20 GB", Dimension::time), InputError);
  EXPECT_THROW(parse_amount("-1", Dimension::time), InputError);
  EXPECT_THROW(parse_amount("", Dimension::time), InputError);
}

// Sequences are counted in 1,024 tokens, tokens to train in thousands, in letters of either case.
TEST(Amount, OfTokensComesAsPeopleWriteIt) {
  for (const char* text : {"8k", "8K", "8 k", "8192"}) EXPECT_EQ(parse_whole(text, Dimension::sequence), 8192) << text;
  EXPECT_EQ(parse_whole("128k", Dimension::sequence), 131'072);
  EXPECT_EQ(parse_whole("1m", Dimension::sequence), 1 << 20);
  EXPECT_DOUBLE_EQ(parse_amount("15T", Dimension::tokens), 15e12);
  EXPECT_DOUBLE_EQ(parse_amount("300b", Dimension::tokens), 300e9);
  EXPECT_DOUBLE_EQ(parse_amount("1e9", Dimension::tokens), 1e9);
  for (const char* text : {"8kb", "8g", "k", "-8k", ""})
    EXPECT_THROW(parse_whole(text, Dimension::sequence), InputError) << text;
  EXPECT_THROW(parse_whole("8k", Dimension::plain), InputError);
  EXPECT_THROW(parse_whole("9e30", Dimension::tokens), InputError);
}

// 10^9 and 2^30, in any spelling.
TEST(Amount, OfSizesComesInEverySpelling) {
  for (const char* text : {"2GB", "2 gb", "2g", "2000000000", "2e9", "2000 MB"})
    EXPECT_EQ(parse_size(text), Bytes(2'000'000'000)) << text;
  for (const char* text : {"2GiB", "2 gib", "2gi", "2048MiB"})
    EXPECT_EQ(parse_size(text), Bytes(std::int64_t{2} << 30)) << text;
  EXPECT_EQ(parse_size("1.8GiB"), Bytes(1'932'735'283)) << "rounded down";
  EXPECT_EQ(parse_size("1b"), Bytes(1));
  for (const char* text : {"2x", "2 GB/s", "-2GB", "GB", "2 i", "9e30", ""})
    EXPECT_THROW(parse_size(text), InputError) << text;
}

TEST(Amount, IsASizeOrAShare) {
  EXPECT_EQ(parse_size_or_share("8%").of(Bytes(1000)), Bytes(80));
  EXPECT_EQ(parse_size_or_share("0.08").of(Bytes(1000)), Bytes(80));
  EXPECT_EQ(parse_size_or_share("0").of(Bytes(1000)), Bytes(0));
  EXPECT_EQ(parse_size_or_share("0%").of(Bytes(1000)), Bytes(0));
  EXPECT_EQ(parse_size_or_share("1").of(Bytes(1000)), Bytes(1));
  EXPECT_EQ(parse_size_or_share("2 KiB").of(Bytes(1000)), Bytes(2048));
  for (const char* text : {"100%", "-8%", "8 %%", "much", ""})
    EXPECT_THROW(parse_size_or_share(text), InputError) << text;
}

}  // namespace
}  // namespace spillway
