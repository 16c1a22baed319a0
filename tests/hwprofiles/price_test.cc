#include "hwprofiles/price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

Price price_of(double value, const char* date, PriceKind kind) {
  Price price;
  price.value = value;
  price.origin.date = date;
  price.kind = kind;
  return price;
}

TEST(Price, DatesAreYearsMonthsAndDays) {
  EXPECT_DOUBLE_EQ(years_of("2025"), 2025.5);
  EXPECT_NEAR(years_of("2025-01-01"), 2025, 0.01);
  EXPECT_NEAR(years_of("2025-12-31"), 2026, 0.01);
  EXPECT_LT(years_of("2025-06"), years_of("2025-07"));
  for (const char* wrong : {"", "25", "2025-13", "2025-1", "2025/01", "2025-01-40", "2025-01-01-01", "May 2025"})
    EXPECT_THROW(years_of(wrong), InputError) << wrong;
}

// Half of the index's way in the logarithm is the square root of its step.
TEST(Price, AnIndexBringsPriceAndRangeToTheDay) {
  const PriceIndex index{"a series", {{"2024-01-01", 1}, {"2026-01-01", 4}}};
  Price price = price_of(100, "2024-01-01", PriceKind::list);
  price.low = 90;
  price.high = 120;
  const Price now = brought(price, &index, "2026-01-01");
  EXPECT_DOUBLE_EQ(now.value, 400);
  EXPECT_DOUBLE_EQ(now.low, 360);
  EXPECT_DOUBLE_EQ(now.high, 480);
  EXPECT_THAT(now.origin.source, testing::HasSubstr("x 4 (a series)"));
  EXPECT_NEAR(brought(price, &index, "2025-01-01").value, 200, 0.01);
  // Back again, and beyond its ends: the value of the end, a range that grows by a quarter for the year more.
  EXPECT_NEAR(brought(now, nullptr, "2026-01-01").value, 400, 1e-9);
  const Price later = brought(price, &index, "2027-01-01");
  EXPECT_DOUBLE_EQ(later.value, 400);
  EXPECT_NEAR(later.high, 480 * widening, 0.01);
  EXPECT_NEAR(later.low, 360 / widening, 0.01);
}

TEST(Price, WithoutAnIndexTheRangeWidensAndTheValueStays) {
  const Price quote = brought(price_of(100, "2024-01-01", PriceKind::quote), nullptr, "2026-01-01");
  EXPECT_EQ(quote.value, 100);
  EXPECT_NEAR(quote.high, 102 * widening * widening, 0.01);
  EXPECT_NEAR(quote.low, 100 / 1.02 / widening / widening, 0.01);
  const Price same = brought(price_of(100, "2026", PriceKind::assumed), nullptr, "2026-02");
  EXPECT_NEAR(same.high, 140, 1e-9);  // some day of that year
  for (const PriceKind kind : {PriceKind::list, PriceKind::street, PriceKind::quote})
    EXPECT_LT(range_factor(kind), range_factor(PriceKind::assumed));
}

}  // namespace
}  // namespace spillway::hwprofiles
