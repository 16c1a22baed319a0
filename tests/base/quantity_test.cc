#include "base/quantity.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway {
namespace {

// GB = 10^9, GiB = 2^30: the two never mix. 1 Gbit/s = 125 MB/s.
TEST(Quantity, KeepsDecimalAndBinaryApart) {
  EXPECT_DOUBLE_EQ(parse_quantity("80 GB", Dimension::bytes).value, 80e9);
  EXPECT_DOUBLE_EQ(parse_quantity("80GiB", Dimension::bytes).value, 85899345920.0);
  EXPECT_DOUBLE_EQ(parse_quantity("3.35TB/s", Dimension::rate).value, 3.35e12);
  EXPECT_DOUBLE_EQ(parse_quantity("200 Gbit/s", Dimension::rate).value, 25e9);
  EXPECT_DOUBLE_EQ(parse_quantity("5 us", Dimension::time).value, 5e-6);
  EXPECT_DOUBLE_EQ(parse_quantity("90%", Dimension::fraction).value, 0.9);
}

TEST(Quantity, RefusesWhatDoesNotMeasureTheDimension) {
  EXPECT_THROW(parse_quantity("80 GB", Dimension::rate), InputError);
  EXPECT_THROW(parse_quantity("80", Dimension::bytes), InputError);
  EXPECT_THROW(parse_quantity("-1 GB", Dimension::bytes), InputError);
  EXPECT_THROW(parse_quantity("nan", Dimension::plain), InputError);
  EXPECT_THROW(parse_quantity("inf GB", Dimension::bytes), InputError);
  EXPECT_THROW(parse_quantity("", Dimension::plain), InputError);
  EXPECT_THROW(parse_quantity("1e999 GB", Dimension::bytes), InputError);
}

TEST(Quantity, PrintsTheUnitThatReadsBest) {
  const auto text = [](double value, Dimension dimension) {
    const PrintedQuantity printed = print_quantity(value, dimension);
    return printed.value + " " + printed.unit;
  };
  EXPECT_EQ(text(85899345920.0, Dimension::bytes), "80 GiB");
  EXPECT_EQ(text(3.84e12, Dimension::bytes), "3.84 TB");
  EXPECT_EQ(text(3.35e12, Dimension::rate), "3.35 TB/s");
  EXPECT_EQ(text(5e-6, Dimension::time), "5 us");
  EXPECT_EQ(text(989e12, Dimension::flop_rate), "989 TFLOPS");
}

}  // namespace
}  // namespace spillway
