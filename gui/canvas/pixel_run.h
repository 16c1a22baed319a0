// Fills a run of pixels of one row, four at a time whatever the optimiser makes of std::fill.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace spillway::gui {

inline void fill_run(std::uint32_t* from, std::uint32_t* const until, std::uint32_t color) {
  const std::array<std::uint32_t, 4> four = {color, color, color, color};
  for (; until - from >= 4; from += 4) std::memcpy(from, four.data(), sizeof four);
  for (; from < until; ++from) *from = color;
}

}  // namespace spillway::gui
