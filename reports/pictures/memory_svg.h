// Two pictures of an allocator at work, self-contained SVG without scripts, fonts or links.
//
//   curve   allocated and reserved over time, the peak of each with its value, the capacity where there is one
//   map     addresses over time: each block a box in the colour of who holds it. Addresses never used are left out; a
//           line marks where they were.
//
// Anything smaller than a pixel is folded: the curve shows the most within it, the map the largest holder.
// Colours are Okabe and Ito's. Equal inputs give equal bytes; the size depends on the width alone.
#pragma once

#include <string>

#include "sim/pictures/memory_picture.h"

namespace spillway::reports {

// width in pixels, at least 480, at most 4096.
std::string memory_curve_svg(const MemoryPicture& picture, int width = 1080);
std::string address_map_svg(const MemoryPicture& picture, int width = 1080);

}  // namespace spillway::reports
