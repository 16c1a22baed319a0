#include "base/json_integer.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

namespace spillway {

std::optional<std::int64_t> json_integer(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > INT64_MAX) return {};
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (!(number > -9.2e18 && number < 9.2e18)) return {};
    return static_cast<std::int64_t>(number);
  }
  if (!value.is_string()) return {};
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

}  // namespace spillway
