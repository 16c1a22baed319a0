#include "base/splitmix64.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

// The first numbers of the reference implementation (Vigna, splitmix64.c) for the seed 1234567.
TEST(SplitMix64, DrawsTheReferenceSequence) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
  EXPECT_EQ(splitmix64(1234567), 6457827717110365317U);
}

TEST(SplitMix64, SkipsAsIfDrawn) {
  SplitMix64 drawn(5), skipped(5, 3);
  for (int i = 0; i < 3; ++i) drawn.next();
  EXPECT_EQ(drawn.next(), skipped.next());
}

TEST(SplitMix64, DistributionsKeepTheirBounds) {
  SplitMix64 random(1);
  double mean = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(random.below(7), 7U);
    const float uniform = random.uniform();
    EXPECT_GE(uniform, 0);
    EXPECT_LT(uniform, 1);
    mean += static_cast<double>(random.bell()) / 1000;
  }
  EXPECT_NEAR(mean, 0, 0.1);  // deviation 0.71 / sqrt(1000) = 0.022
}

}  // namespace
}  // namespace spillway
