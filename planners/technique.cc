#include "planners/technique.h"

#include <array>

namespace spillway::planners {

std::string_view to_string(PlanPart part) {
  constexpr std::array<std::string_view, 5> names = {"schedule", "fates", "order", "memory", "none"};
  return names[static_cast<std::size_t>(part)];
}

}  // namespace spillway::planners
