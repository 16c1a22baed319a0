#include "base/number_text.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(NumberText, Bytes) {
  EXPECT_EQ(gib_text(Bytes(std::int64_t{3} << 29)), "1.50 GiB");
  EXPECT_EQ(gib_text(Bytes(std::int64_t{3} << 29), 3), "1.500 GiB");
  EXPECT_EQ(mib_text(Bytes(3 << 19)), "1.50 MiB");
  EXPECT_EQ(bytes_text(Bytes(512)), "512 B");
  EXPECT_EQ(bytes_text(Bytes(150 << 10)), "150.0 KiB");
  EXPECT_EQ(bytes_text(Bytes(-(std::int64_t{3} << 30))), "-3.00 GiB");
}

TEST(NumberText, Times) {
  EXPECT_EQ(duration_text(microseconds(1250)), "1.25 ms");
  EXPECT_EQ(duration_text(microseconds(3)), "3.00 \xC2\xB5s");
  EXPECT_EQ(duration_text(Picos(0)), "0 ps");
  EXPECT_EQ(precise_duration_text(microseconds(560'393)), "560.393 ms");
  EXPECT_EQ(precise_duration_text(microseconds(-3)), "-3.000 us");
  EXPECT_EQ(precise_duration_text(Picos(17)), "17 ps");
}

TEST(NumberText, SharesAndCounts) {
  EXPECT_EQ(percent_text(0.12345), "12.3 %");
  EXPECT_EQ(percent_text(0.12345, 2), "12.35 %");
  EXPECT_EQ(signed_percent_text(0.5), "+50.0 %");
  EXPECT_EQ(signed_percent_text(-0.5, 0), "-50 %");
  EXPECT_EQ(grouped_text(0), "0");
  EXPECT_EQ(grouped_text(999), "999");
  EXPECT_EQ(grouped_text(12'345), "12,345");
  EXPECT_EQ(grouped_text(-1'234'567), "-1,234,567");
}

}  // namespace
}  // namespace spillway
