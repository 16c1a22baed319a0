// Checks that several parts of a set-up share.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "base/input_error.h"

namespace spillway::models {

inline void check_divides(const char* name, std::int64_t parts, const char* what, std::int64_t whole) {
  if (whole % parts != 0)
    throw InputError("", name, fmt::format("{} does not divide the {} {}", parts, whole, what),
                     "choose a divisor of it");
}

}  // namespace spillway::models
