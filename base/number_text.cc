#include "base/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace spillway {
namespace {

struct TextUnit {
  std::string_view name;
  std::int64_t size;
};
constexpr std::array<TextUnit, 5> time_steps = {
    {{"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1'000}, {"ps", 1}}};
constexpr std::array<TextUnit, 5> byte_steps = {
    {{"TiB", std::int64_t{1} << 40}, {"GiB", std::int64_t{1} << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}};

InUnit in_unit(std::int64_t value, const std::array<TextUnit, 5>& units) {
  for (const TextUnit& unit : units)
    if (value >= unit.size || value <= -unit.size || unit.size == 1)
      return {static_cast<double>(value) / static_cast<double>(unit.size), unit.name, unit.size == 1};
  return {};
}

std::string in_short(const InUnit& number, std::string_view unit) {
  const int decimals = number.is_smallest ? 0 : std::abs(number.amount) >= 100 ? 1 : 2;
  return fmt::format("{:.{}f} {}", number.amount, decimals, unit);
}

}  // namespace

InUnit in_byte_unit(Bytes bytes) { return in_unit(bytes.count(), byte_steps); }
InUnit in_time_unit(Picos time) { return in_unit(time.count(), time_steps); }

double in_gib(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 30); }
double in_mib(Bytes bytes) { return static_cast<double>(bytes.count()) / (1 << 20); }

std::string gib_text(Bytes bytes, int decimals) { return fmt::format("{:.{}f} GiB", in_gib(bytes), decimals); }
std::string mib_text(Bytes bytes) { return fmt::format("{:.2f} MiB", in_mib(bytes)); }

std::string bytes_text(Bytes bytes) {
  const InUnit number = in_byte_unit(bytes);
  return in_short(number, number.unit);
}

std::string duration_text(Picos time) {
  const InUnit number = in_time_unit(time);
  return in_short(number, number.unit == "us" ? "\xC2\xB5s" : number.unit);
}

std::string precise_duration_text(Picos time) {
  const InUnit number = in_time_unit(time);
  return fmt::format("{:.{}f} {}", number.amount, number.is_smallest ? 0 : 3, number.unit);
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 9999.5 && size < 1e18) return grouped_text(std::llround(value));
  if (size >= 0.001 || size == 0) return fmt::format("{:.4g}", value);
  return fmt::format("{:.2e}", value);
}

std::string percent_text(double share, int decimals) { return fmt::format("{:.{}f} %", share * 100, decimals); }
std::string signed_percent_text(double share, int decimals) { return fmt::format("{:+.{}f} %", share * 100, decimals); }

std::string grouped_text(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace spillway
