#include "studies/procurement/price_odds.h"

#include <gtest/gtest.h>

#include "studies/procurement/fleet_cost.h"

namespace spillway::studies {
namespace {

// A machine at a price, all else nothing: its cost is the price.
OddsCase machine_at(double usd, std::size_t price) {
  OddsCase option;
  for (const FormulaField& field : cost_fields())
    if (field.expression.empty()) option.figures.given[field.name] = {0, {}, 1};
  for (const char* field :
       {"tokens", "period_months", "utilisation", "power_overhead", "retention_credit", "machine_price_factor",
        "drive_price_factor", "gpus", "gpus_per_machine", "busy_days", "drive_endurance_tb"})
    option.figures.given[field] = {1, {}, 1};
  option.figures.given["machine_price"] = {usd, {}, 1};
  option.prices = {{"machine_price", price}};
  return option;
}

TEST(PriceOdds, AreOfTheRanges) {
  const FormulaWorkbook book;
  // Ranges that don't meet: never in doubt.
  const PriceOdds sure =
      price_odds(book, {{"a", 100, 90, 110}, {"b", 200, 150, 250}}, {machine_at(100, 0), machine_at(200, 1)}, 0);
  EXPECT_EQ(sure.cheapest[0], 1);
  EXPECT_EQ(sure.cheapest[1], 0);
  EXPECT_FALSE(sure.decides);
  // Alike: half and half, within four standard deviations of 2,000 draws.
  const PriceOdds even =
      price_odds(book, {{"a", 100, 50, 200}, {"b", 100, 50, 200}}, {machine_at(100, 0), machine_at(100, 1)}, 0);
  EXPECT_NEAR(even.cheapest[0], 0.5, 0.045);
  EXPECT_DOUBLE_EQ(even.cheapest[0] + even.cheapest[1], 1);
  // One that is known and one that isn't: that one decides, and by hand: b is the dearer in half of its draws.
  const PriceOdds one =
      price_odds(book, {{"a", 100, 100, 100}, {"b", 100, 50, 200}}, {machine_at(100, 0), machine_at(100, 1)}, 0);
  ASSERT_TRUE(one.decides);
  EXPECT_EQ(*one.decides, 1U);
  EXPECT_NEAR(one.if_low, 0, 0.001);
  EXPECT_NEAR(one.if_high, 1, 0.001);
}

// One price of both options moves both: it never decides.
TEST(PriceOdds, ASharedPriceMovesAll) {
  const PriceOdds odds = price_odds({}, {{"a", 100, 50, 200}}, {machine_at(100, 0), machine_at(101, 0)}, 0);
  EXPECT_EQ(odds.cheapest[0], 1);
  EXPECT_FALSE(odds.decides);
}

}  // namespace
}  // namespace spillway::studies
