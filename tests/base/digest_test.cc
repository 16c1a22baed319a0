#include "base/digest.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::traces {
namespace {

SequenceDigest sequence(const std::vector<std::uint64_t>& words) {
  SequenceDigest digest;
  for (const std::uint64_t word : words) digest.add(word);
  return digest;
}

TEST(Digest, DependsOnWordsAndTheirOrder) {
  const auto digest = [](std::uint64_t a, std::uint64_t b) {
    Digest both;
    both.add(a);
    both.add(b);
    return both.value();
  };
  EXPECT_NE(digest(1, 2), digest(2, 1));
  EXPECT_NE(digest(1, 2), digest(1, 3));
  EXPECT_NE(digest(0, 0), Digest().value());
}

TEST(Digest, TextsKeepTheirBounds) {
  const auto digest = [](std::string_view a, std::string_view b) {
    Digest both;
    both.add(a);
    both.add(b);
    return both.value();
  };
  EXPECT_NE(digest("ab", "c"), digest("a", "bc"));
  EXPECT_NE(digest("", "abc"), digest("abc", ""));
  EXPECT_NE(digest("12345678", "9"), digest("123456789", ""));
  EXPECT_NE(digest("kernel_17", ""), digest("kernel_18", ""));
}

TEST(SequenceDigest, OneBehindTheOtherIsTheWhole) {
  std::vector<std::uint64_t> words;
  for (std::uint64_t i = 0; i < 100; ++i) words.push_back(i * i * i % 17);
  for (std::size_t cut = 0; cut <= words.size(); ++cut) {
    const auto middle = words.begin() + static_cast<std::ptrdiff_t>(cut);
    SequenceDigest both = sequence({words.begin(), middle});
    both.append(sequence({middle, words.end()}));
    EXPECT_EQ(both, sequence(words)) << cut;
  }
}

TEST(SequenceDigest, RepeatedIsWrittenOut) {
  const SequenceDigest part = sequence({3, 1, 4, 1, 5});
  SequenceDigest written;
  for (std::uint64_t times = 0; times < 70; ++times) {
    EXPECT_EQ(part.repeated(times), written) << times;
    EXPECT_EQ(written.size(), 5 * times);
    for (const std::uint64_t word : {3, 1, 4, 1, 5}) written.add(word);
  }
}

// In integers modulo 2^64 the digest of 2^40 equal parts would have 24 bits left to tell them by.
TEST(SequenceDigest, ManyTimesOverStillTellsPartsApart) {
  constexpr std::uint64_t times = std::uint64_t{1} << 40;
  const std::uint64_t a = sequence({1}).repeated(times).value(), b = sequence({2}).repeated(times).value();
  EXPECT_NE(a, b);
  EXPECT_NE(a & 0xFFFF, b & 0xFFFF);
  EXPECT_NE(a >> 48, b >> 48);
  EXPECT_NE(a, sequence({1}).repeated(times + 1).value());
}

TEST(SequenceDigest, OrderAndNumberCount) {
  EXPECT_NE(sequence({1, 2}).value(), sequence({2, 1}).value());
  EXPECT_NE(sequence({}).value(), sequence({0}).value());
  EXPECT_NE(sequence({0}).value(), sequence({0, 0}).value());
}

// The same bits from every compiler: fingerprints in golden results rest on these.
TEST(SequenceDigest, Pinned) {
  Digest digest;
  digest.add("spillway");
  digest.add(1);
  EXPECT_EQ(digest.value(), 5077317255372353922u);
  EXPECT_EQ(sequence({1, 2, 3}).value(), 16795872615674824535u);
  EXPECT_EQ(sequence({1, 2, 3}).repeated(1000).value(), 11776001792512857096u);
}

}  // namespace
}  // namespace spillway::traces
