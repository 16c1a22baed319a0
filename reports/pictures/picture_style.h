// Sizes in pixels and colours that this room's pictures share.
#pragma once

#include <string_view>

#include "base/svg_canvas.h"

namespace spillway::reports {

inline constexpr double margin = 24, axis_room = 76;
inline constexpr double small = 11, normal = 13, large = 15;  // of text
inline constexpr std::string_view ink = svg_ink, faint = svg_faint, grid = svg_grid, red = "#C00000";
inline constexpr std::string_view allocated_fill = "#0072B2", reserved_line = "#4D4D4D";

}  // namespace spillway::reports
