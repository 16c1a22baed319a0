#include "base/amount.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include "base/input_error.h"

namespace spillway {
namespace {

// As written, from the first number's end on.
struct Amount {
  double number = 0;
  bool is_sound = false;
  std::string_view unit;
};

Amount split(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  Amount amount;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.number);
  amount.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (amount.unit.starts_with(' ')) amount.unit.remove_prefix(1);
  amount.is_sound = error == std::errc() && std::isfinite(amount.number) && amount.number >= 0;
  return amount;
}

std::string lower_case(std::string_view text) {
  std::string name;
  for (const char raw : text) name += static_cast<char>(std::tolower(static_cast<unsigned char>(raw)));
  return name;
}

// "g", "GB", "gib": decimal without an i, as GB is; 0: no unit of bytes.
double loose_byte_factor(std::string_view unit) {
  std::string name = lower_case(unit);
  if (name == "b") return 1;
  if (name.ends_with('b')) name.pop_back();
  constexpr std::string_view prefixes = "kmgtp";
  const std::size_t place = name.empty() ? std::string_view::npos : prefixes.find(name.front());
  if (place == std::string_view::npos || name.size() > 2 || (name.size() == 2 && name.back() != 'i')) return 0;
  return std::pow(name.size() == 2 ? 1024.0 : 1000.0, static_cast<double>(place + 1));
}

// Units of either case; 0: none of the dimension, or one of those whose case counts ("mW", "MW").
double loose_factor(std::string_view unit, Dimension dimension) {
  if (dimension == Dimension::bytes) return loose_byte_factor(unit);
  if (dimension != Dimension::sequence && dimension != Dimension::tokens) return 0;
  for (const std::string& known : units_of(dimension))
    if (lower_case(known) == lower_case(unit)) return unit_factor(dimension, known);
  return 0;
}

}  // namespace

double parse_amount(std::string_view text, Dimension dimension) {
  const Amount amount = split(text);
  if (amount.is_sound && amount.unit.empty()) return amount.number;
  const double factor = amount.is_sound ? loose_factor(amount.unit, dimension) : 0;
  return factor > 0 ? amount.number * factor : parse_quantity(text, dimension).value;
}

std::int64_t parse_whole(std::string_view text, Dimension dimension) {
  const double number = parse_amount(text, dimension);
  if (number >= 0x1p62)
    throw InputError("", "", "'" + std::string(text) + "' is too large",
                     dimension == Dimension::bytes ? "give a size such as 40GiB" : "give less than 2^62");
  return static_cast<std::int64_t>(number);
}

Bytes parse_size(std::string_view text) { return Bytes(parse_whole(text, Dimension::bytes)); }

Bytes SizeOrShare::of(Bytes whole) const {
  return share > 0 ? Bytes(static_cast<std::int64_t>(share * static_cast<double>(whole.count()))) : size;
}

SizeOrShare parse_size_or_share(std::string_view text) {
  const Amount amount = split(text);
  const bool is_percent = amount.is_sound && amount.unit == "%";
  const bool is_share = amount.is_sound && amount.unit.empty() && amount.number > 0 && amount.number < 1;
  if (!is_percent && !is_share) return {.size = parse_size(text)};
  const double share = is_percent ? amount.number / 100 : amount.number;
  if (share >= 1)
    throw InputError("", "", "'" + std::string(text) + "' is no share of a whole", "give less than 100 %, or a size");
  return {.share = share};
}

}  // namespace spillway
