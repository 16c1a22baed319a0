// A step's memory in the size of a stamp: by owner over the step, with what the GPU has as a line.
#pragma once

#include <QImage>
#include <QSize>

#include "gui/canvas/memory_scene.h"
#include "gui/canvas/theme.h"

namespace spillway::gui {

// size: logical pixels; ratio: device pixels per logical one. The capacity's line stands where memory goes to at least
// half of it: what needs little of it is drawn as large as it can be.
QImage memory_thumbnail(const MemoryScene& memory, QSize size, double ratio, const Theme& theme);

}  // namespace spillway::gui
