// Price: what one thing costs, on its own day and on another: with a kind, a quantity and a range.
//
// An offer of last week and a launch price of five years ago are no prices of one date. The index of its class brings a
// price to the day asked for, where the list has one. Value and range are multiplied by index(day) / index(price's
// day), the index read between its points in the logarithm. Without an index, and for days beyond its ends, the value
// stays and the range is widened: divided and multiplied by `widening` for every year between.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

// The authority behind a price: a vendor's list, what shops take, an offer in writing, nobody.
enum class PriceKind : unsigned char { list, street, quote, assumed };
const Words& price_kind_words();

// Factor by which a price that states no range may be off either way.
double range_factor(PriceKind kind);      // list 1.1, street 1.15, quote 1.02, assumed 1.4
inline constexpr double widening = 1.25;  // a year

struct Price : Sourced<double> {
  PriceKind kind = PriceKind::assumed;
  double low = 0, high = 0;   // of the same unit; 0: not stated
  std::int64_t quantity = 1;  // that it holds for, at least
  std::string index;          // of the list's; empty: none
};

struct PriceIndex {
  std::string source;
  std::map<std::string, double> points;  // by date; any scale
};

// Years since the year 0: "2025" is its middle, "2025-06" the middle of June. Throws InputError for another form.
double years_of(const std::string& date);

// On the day asked for. `index`: of its class; null: none. `low` and `high` are given then, and the source says what
// was done. Precondition: the dates have a form of years_of().
Price brought(Price price, const PriceIndex* index, const std::string& date);

}  // namespace spillway::hwprofiles
