#include "hwprofiles/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// A part of a date as a number; `from` to `to` letters of it.
int part_of(const std::string& date, std::size_t from, std::size_t letters, int least, int most) {
  int number = 0;
  const char* const begin = date.data() + from;
  const char* const end = begin + letters;
  const bool fits = from + letters <= date.size();
  const auto [at, error] = fits ? std::from_chars(begin, end, number) : std::from_chars_result{begin, std::errc{}};
  if (!fits || error != std::errc{} || at != end || number < least || number > most)
    throw InputError("", "date", "'" + date + "' is no date", "write 2026, 2026-03 or 2026-03-15");
  return number;
}

// The index at a time, and how many years it lies beyond the index's ends.
std::pair<double, double> read(const PriceIndex& index, double at) {
  double before = 0, value_before = 0;
  for (const auto& [date, value] : index.points) {
    const double here = years_of(date);
    if (at <= here) {
      if (value_before == 0) return {value, here - at};
      const double share = (at - before) / (here - before);
      return {value_before * std::pow(value / value_before, share), 0};
    }
    before = here;
    value_before = value;
  }
  return {value_before, at - before};
}

}  // namespace

const Words& price_kind_words() {
  static const Words words{{"list", "a vendor's price list"},
                           {"street", "what shops take"},
                           {"quote", "an offer in writing"},
                           {"assumed", "nobody vouches for it"}};
  return words;
}

double range_factor(PriceKind kind) {
  switch (kind) {
    case PriceKind::list:
      return 1.1;
    case PriceKind::street:
      return 1.15;
    case PriceKind::quote:
      return 1.02;
    case PriceKind::assumed:
      return 1.4;
  }
  return 1.4;
}

double years_of(const std::string& date) {
  const int year = part_of(date, 0, 4, 1900, 2999);
  if (date.size() == 4) return year + 0.5;
  const int month = part_of(date, 5, 2, 1, 12);
  const bool has_day = date.size() > 7;
  const int day = has_day ? part_of(date, 8, 2, 1, 31) : 15;
  if (date[4] != '-' || (has_day && (date[7] != '-' || date.size() != 10))) part_of("", 0, 4, 0, 0);
  return year + (month - 1 + (day - 0.5) / 31) / 12;
}

Price brought(Price price, const PriceIndex* index, const std::string& date) {
  if (price.low <= 0) price.low = price.value / range_factor(price.kind);
  if (price.high <= 0) price.high = price.value * range_factor(price.kind);
  const double from = years_of(price.origin.date), to = years_of(date);
  // A bare year may be any day of it: within that year nothing is widened.
  const double apart = price.origin.date.size() == 4 && date.starts_with(price.origin.date) ? 0 : std::abs(to - from);
  double unknown = apart;
  if (index != nullptr && !index->points.empty() && apart > 0) {
    const auto [then, before] = read(*index, from);
    const auto [now, after] = read(*index, to);
    const double factor = now / then;
    unknown = std::min(apart, before + after);
    if (factor != 1) {
      for (double* const each : {&price.value, &price.low, &price.high}) *each *= factor;
      price.origin.source +=
          fmt::format("; brought from {} to {} by x {:.3g} ({})", price.origin.date, date, factor, index->source);
    }
  }
  price.low /= std::pow(widening, unknown);
  price.high *= std::pow(widening, unknown);
  return price;
}

}  // namespace spillway::hwprofiles
