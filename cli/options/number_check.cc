#include "cli/options/number_check.h"

#include <charconv>
#include <cmath>
#include <string>

namespace spillway::cli {
namespace {

WordCheck number_check(bool takes_zero) {
  const auto check = [takes_zero](const std::string& text) -> std::string {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    const bool is_number = error == std::errc() && at == end && std::isfinite(value);
    if (is_number && value >= 9.2e18) return text + " is too large";  // would not fit options of whole numbers
    if (is_number && (takes_zero ? value >= 0 : value > 0)) return {};
    return "'" + text + "' is not a number " + (takes_zero ? "of 0 or more" : "above 0");
  };
  return {takes_zero ? "NONNEGATIVE" : "POSITIVE", check};
}

}  // namespace

WordCheck positive_number() { return number_check(false); }
WordCheck non_negative_number() { return number_check(true); }

}  // namespace spillway::cli
