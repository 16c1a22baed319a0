#include "base/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "base/input_error.h"

namespace spillway {
namespace {

struct Unit {
  const char* name;
  double factor;
  bool printed = true;  // offered by print_quantity
};

constexpr double kibi = 1024, mebi = kibi * 1024, gibi = mebi * 1024, tebi = gibi * 1024;

constexpr Unit byte_units[] = {{"B", 1},      {"kB", 1e3},   {"KB", 1e3, false}, {"MB", 1e6},
                               {"GB", 1e9},   {"TB", 1e12},  {"PB", 1e15},       {"KiB", kibi},
                               {"MiB", mebi}, {"GiB", gibi}, {"TiB", tebi}};
constexpr Unit rate_units[] = {{"B/s", 1},
                               {"kB/s", 1e3},
                               {"MB/s", 1e6},
                               {"GB/s", 1e9},
                               {"TB/s", 1e12},
                               {"KiB/s", kibi, false},
                               {"MiB/s", mebi, false},
                               {"GiB/s", gibi, false},
                               {"TiB/s", tebi, false},
                               {"Mbit/s", 1.25e5, false},
                               {"Gbit/s", 1.25e8, false},
                               {"Tbit/s", 1.25e11, false}};
constexpr Unit time_units[] = {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit flop_units[] = {{"FLOPS", 1}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}};
constexpr Unit power_units[] = {{"W", 1}, {"kW", 1e3}};
constexpr Unit money_units[] = {{"USD", 1}};
constexpr Unit hourly_units[] = {{"USD/h", 1}};
constexpr Unit energy_price_units[] = {{"USD/kWh", 1}};
constexpr Unit operation_units[] = {{"IOPS", 1}, {"kIOPS", 1e3}, {"MIOPS", 1e6}};
constexpr Unit year_units[] = {{"years", 1}};
constexpr Unit fraction_units[] = {{"", 1}, {"%", 0.01, false}};
constexpr Unit plain_units[] = {{"", 1}};
constexpr Unit sequence_units[] = {{"", 1}, {"k", kibi, false}, {"m", mebi, false}};
constexpr Unit token_units[] = {{"", 1}, {"k", 1e3, false}, {"M", 1e6, false}, {"B", 1e9, false}, {"T", 1e12, false}};

std::span<const Unit> units(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return byte_units;
    case Dimension::rate:
      return rate_units;
    case Dimension::time:
      return time_units;
    case Dimension::flop_rate:
      return flop_units;
    case Dimension::power:
      return power_units;
    case Dimension::money:
      return money_units;
    case Dimension::money_per_hour:
      return hourly_units;
    case Dimension::money_per_kwh:
      return energy_price_units;
    case Dimension::operations:
      return operation_units;
    case Dimension::years:
      return year_units;
    case Dimension::fraction:
      return fraction_units;
    case Dimension::sequence:
      return sequence_units;
    case Dimension::tokens:
      return token_units;
    case Dimension::count:
    case Dimension::plain:
      return plain_units;
  }
  return plain_units;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string offered(Dimension dimension) {
  std::string text;
  for (const Unit& unit : units(dimension)) {
    if (!text.empty()) text += ", ";
    text += *unit.name == '\0' ? "no unit" : unit.name;
  }
  return "use one of: " + text;
}

}  // namespace

double unit_factor(Dimension dimension, std::string_view unit) {
  for (const Unit& known : units(dimension)) {
    if (unit == known.name) return known.factor;
  }
  return 0;
}

std::vector<std::string> units_of(Dimension dimension) {
  std::vector<std::string> names;
  for (const Unit& unit : units(dimension)) names.emplace_back(unit.name);
  return names;
}

Quantified parse_quantity(std::string_view text, Dimension dimension) {
  const std::string_view whole = trimmed(text);
  double number = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (error != std::errc() || !std::isfinite(number)) {
    if (dimension == Dimension::tokens)
      throw InputError("", "", "'" + std::string(text) + "' is no number of tokens", "write for example 2e12 or 2T");
    throw InputError("", "", "'" + std::string(text) + "' is not a number with a unit",
                     "write for example 80 GiB or 3.35 TB/s");
  }
  if (number < 0) throw InputError("", "", "'" + std::string(text) + "' is negative", "give a value of at least 0");
  const std::string_view unit = trimmed(whole.substr(static_cast<std::size_t>(end - whole.data())));
  const double factor = unit_factor(dimension, unit);
  if (factor == 0) {
    throw InputError("", "",
                     unit.empty() ? "the unit is missing" : "unit '" + std::string(unit) + "' does not fit here",
                     offered(dimension));
  }
  return {number * factor, std::string(unit)};
}

PrintedQuantity print_quantity(double base_value, Dimension dimension) {
  const Unit* best = nullptr;
  std::size_t best_length = 0;
  for (const Unit& unit : units(dimension)) {
    if (!unit.printed) continue;
    const double scaled = base_value / unit.factor;
    // Between 1 and 10,000 reads well; among those the shortest text wins, decimal and larger first.
    const bool readable = scaled >= 1 && scaled < 10'000;
    const std::size_t length = fmt::format("{:.6g}", scaled).size() + (readable ? 0 : 100);
    const bool larger = best != nullptr && length == best_length && unit.factor > best->factor && readable;
    if (best == nullptr || length < best_length || larger) {
      best = &unit;
      best_length = length;
    }
  }
  return {fmt::format("{:.6g}", base_value / best->factor), best->name};
}

}  // namespace spillway
