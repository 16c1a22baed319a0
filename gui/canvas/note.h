// A user's note at a place of a step.
#pragma once

#include <cstdint>
#include <string>

#include "sim/pictures/memory_clock.h"

namespace spillway::gui {

struct Note {
  MemoryClock axis = MemoryClock::gpu;  // that it was written on
  std::int64_t at = 0;                  // on it: picoseconds, or operations issued before
  std::string text;
  friend bool operator==(const Note&, const Note&) = default;
};

}  // namespace spillway::gui
