#include "studies/procurement/price_odds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/splitmix64.h"
#include "studies/procurement/fleet_cost.h"

namespace spillway::studies {
namespace {

constexpr std::size_t at_once = 100;  // draws worked out in one table

// What the price is multiplied by.
double factor_of(const RangedPrice& price, double at) {
  if (price.value <= 0) return 1;
  return at < 0.5 ? std::pow(price.low / price.value, 1 - 2 * at) : std::pow(price.high / price.value, 2 * at - 1);
}

}  // namespace

PriceOdds price_odds(const FormulaWorkbook& book, const std::vector<RangedPrice>& prices,
                     const std::vector<OddsCase>& options, std::size_t chosen) {
  SplitMix64 random(price_seed);
  std::vector<std::size_t> wins(options.size());
  std::vector<std::size_t> low(prices.size()), low_wins(prices.size()), high_wins(prices.size());
  for (std::size_t done = 0; done < price_draws; done += at_once) {
    FormulaWorkbook drawn = book;
    FormulaTable table{"Draws", "", cost_fields(), {}, {}};
    std::vector<std::vector<double>> at(at_once, std::vector<double>(prices.size()));
    for (std::vector<double>& draw : at) {
      for (double& place : draw) place = static_cast<double>(random.uniform());
      for (const OddsCase& option : options) {
        FormulaCase moved = option.figures;
        for (const auto& [field, price] : option.prices) {
          FormulaInput& given = moved.given.at(field);
          (given.cells.empty() ? given.number : given.factor) *= factor_of(prices[price], draw[price]);
        }
        table.cases.push_back(std::move(moved));
      }
    }
    const std::size_t place = drawn.add(std::move(table));
    for (std::size_t d = 0; d < at_once; ++d) {
      std::size_t best = 0;
      const auto cost = [&](std::size_t o) { return drawn.value(place, d * options.size() + o, "usd_per_billion"); };
      for (std::size_t o = 1; o < options.size(); ++o)
        if (cost(o) < cost(best)) best = o;
      ++wins[best];
      for (std::size_t p = 0; p < prices.size(); ++p) {
        const bool is_low = at[d][p] < 0.5;
        low[p] += is_low ? 1 : 0;
        if (best == chosen) ++(is_low ? low_wins : high_wins)[p];
      }
    }
  }
  PriceOdds odds;
  const auto share = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  for (const std::size_t won : wins) odds.cheapest.push_back(share(won, price_draws));
  double widest = least_swing;
  for (std::size_t p = 0; p < prices.size(); ++p) {
    const double if_low = share(low_wins[p], low[p]), if_high = share(high_wins[p], price_draws - low[p]);
    if (std::abs(if_low - if_high) <= widest) continue;
    widest = std::abs(if_low - if_high);
    odds.decides = p;
    odds.if_low = if_low;
    odds.if_high = if_high;
  }
  return odds;
}

}  // namespace spillway::studies
