#include "planners/technique.h"

#include <array>

namespace spillway::planners {

std::string setting(std::string_view key, std::string_view value) {
  return std::string(key) + "=" + std::string(value);
}

std::string_view to_string(PlanPart part) {
  constexpr std::array<std::string_view, 5> names = {"schedule", "fates", "order", "memory", "none"};
  return names[static_cast<std::size_t>(part)];
}

}  // namespace spillway::planners
