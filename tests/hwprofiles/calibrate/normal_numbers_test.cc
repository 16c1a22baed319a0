#include "hwprofiles/calibrate/normal_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::hwprofiles {
namespace {

constexpr std::uint64_t count = 200'000;

// Of N numbers the mean has a standard error of 1 / sqrt(N) = 0.0022, the variance one of sqrt(2 / N) = 0.0032.
TEST(NormalNumbers, HaveMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0, neighbours = 0, before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = normal_number(i, 1);
    sum += value;
    squares += value * value;
    neighbours += value * before;
    before = value;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.015);
  EXPECT_NEAR(neighbours / count, 0, 0.01);
}

// A bf16 is the upper half of an fp32, so it is off by less than 2^-7 of it.
TEST(NormalNumbers, AreCutToBf16) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    union {
      std::uint32_t bits;
      float value;
    } wide{};
    wide.bits = static_cast<std::uint32_t>(normal_bf16(i, 7)) << 16U;
    EXPECT_NEAR(wide.value, normal_number(i, 7), std::abs(normal_number(i, 7)) / 128);
  }
}

// e4m3: (1 + fraction / 8) 2^(exponent - 7); 0x7f and 0xff are NaN.
TEST(NormalNumbers, HoldNoNanInFp8) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint8_t bits = normal_fp8(i, 3);
    ASSERT_NE(bits & 0x7fU, 0x7fU);
    const int exponent = bits >> 3U & 15U;
    const double value =
        exponent == 0 ? 0 : std::ldexp(1 + (bits & 7U) / 8.0, exponent - 7) * ((bits & 0x80U) ? -1 : 1);
    const double wanted = normal_number(i, 3);
    ASSERT_NEAR(value, wanted, std::max(std::abs(wanted) / 8, 1.0 / 64));
  }
}

}  // namespace
}  // namespace spillway::hwprofiles
