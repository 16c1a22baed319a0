// Sweep files: any bytes become a space whose first points can be looked at, or are refused with an InputError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_error.h"
#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_space.h"
#include "tests/fuzz/fuzz_target.h"

SPILLWAY_FUZZ_TARGET(sweep) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const spillway::studies::SweepFile file = spillway::studies::parse_sweep(text, "fuzz.json", "/nonexistent");
    spillway::studies::SweepSpace space(file);
    constexpr std::int64_t looked_at = 200;
    for (std::int64_t at = 0; at < std::min(space.size(), looked_at); ++at) {
      const auto point = space.next(at, at + 1);
      if (!point) continue;
      static_cast<void>(space.settings(*point));
      static_cast<void>(space.label(*point));
    }
  } catch (const spillway::InputError&) {
  }
  return 0;
}
