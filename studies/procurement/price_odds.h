// How sure a choice by cost is when prices are ranges: drawn again and again, each price by itself.
//
// Half of a price's draws lie below its value, half above, evenly in the logarithm between its ends. The draws are
// those of one fixed seed, so that the same prices give the same odds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "studies/procurement/formula_table.h"

namespace spillway::studies {

inline constexpr std::size_t price_draws = 2000;
inline constexpr std::uint64_t price_seed = 20250607;
// A price decides when the chosen option's odds in its cheap half and in its dear half are so far apart, at least.
inline constexpr double least_swing = 0.1;

// A price that figures rest on, in the figures' own unit.
struct RangedPrice {
  std::string name;
  double value = 0, low = 0, high = 0;
};

// An option: what is given of its cost, and which of the fields are which price.
struct OddsCase {
  FormulaCase figures;
  std::map<std::string, std::size_t> prices;  // by field: of the list
};

struct PriceOdds {
  std::vector<double> cheapest;        // by option: share of the draws in which its usd_per_billion is the least
  std::optional<std::size_t> decides;  // the price that the choice turns on; none: it turns on no single one
  double if_low = 0, if_high = 0;      // the chosen option's odds where that price is in its lower half, in its upper
};

// `chosen`: of the options. The cases' fields are those of cost_fields(), their cells the book's.
PriceOdds price_odds(const FormulaWorkbook& book, const std::vector<RangedPrice>& prices,
                     const std::vector<OddsCase>& options, std::size_t chosen);

}  // namespace spillway::studies
