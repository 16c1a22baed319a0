#include "base/short_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number_text.h"

namespace spillway {

std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size < 1e-9) return "0";
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, size >= 9.995 ? 1 : size >= 0.995 ? 2 : 3);
}

std::string short_duration(double seconds) {
  return seconds >= 0.9995 ? three_digits(seconds) + " s" : three_digits(seconds * 1e3) + " ms";
}

std::string short_size(Bytes bytes) {
  constexpr double kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;
  const auto amount = static_cast<double>(bytes.count());
  if (std::abs(amount) >= gib / 2) return three_digits(amount / gib) + " GiB";
  if (std::abs(amount) >= mib / 2) return three_digits(amount / mib) + " MiB";
  if (std::abs(amount) >= kib / 2) return three_digits(amount / kib) + " KiB";
  return fmt::format("{} B", bytes.count());
}

namespace {

int percent_decimals(double share) { return std::abs(share) < 0.0995 ? 1 : 0; }

}  // namespace

std::string short_percent(double share) { return percent_text(share, percent_decimals(share)); }
std::string signed_short_percent(double share) { return signed_percent_text(share, percent_decimals(share)); }

std::int64_t whole_nanoseconds(Picos time) {
  const std::int64_t count = time.count();
  return (count + (count < 0 ? -500 : 500)) / 1000;
}

}  // namespace spillway
