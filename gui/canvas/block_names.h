// Names of blocks in the address map, where there is room for them.
#pragma once

#include <QPainter>
#include <string>

#include "gui/canvas/track_painter.h"

namespace spillway::gui {

inline constexpr int least_named_width = 70, least_named_height = 12;  // logical pixels

// A block of MemoryPicture::blocks: tensor, or what it was made for.
std::string block_name(const Trace& trace, const MemoryPicture::Block& block);

// Names blocks of the map; its first row of pixels is at `top`. A map of over `most_blocks` gets no names; at most
// `most_names` are drawn. O(blocks).
void paint_block_names(QPainter& painter, const TrackScene& scene, const TrackLook& look, const Theme& theme, int top,
                       int height);

}  // namespace spillway::gui
