// Draws what an allocator holds: the curve over time, and the map of addresses over time.
#pragma once

#include <QImage>
#include <memory>
#include <optional>

#include "gui/canvas/address_picture.h"
#include "gui/canvas/plot_frame.h"
#include "gui/canvas/step_curve.h"
#include "sim/replay/memory_picture.h"

namespace spillway::gui {

// A MemoryPicture made ready: curves folded on demand, blocks squeezed. Immutable.
struct MemoryScene {
  MemoryPicture picture;
  StepCurve allocated, reserved;
  AddressMap map;
  TimeRange whole;
};
std::shared_ptr<const MemoryScene> memory_scene(MemoryPicture picture);

struct MemoryLook {
  PlotFrame frame;
  TimeRange view;
  PlotMarks marks;
  std::optional<std::size_t> chosen;  // in AddressMap::blocks
};

QImage paint_memory_curve(const MemoryScene& scene, const MemoryScene* baseline, const MemoryLook& look,
                          const Theme& theme);
QImage paint_address_map(const MemoryScene& scene, const MemoryScene* baseline, const MemoryLook& look,
                         const Theme& theme);
// The bytes of the map's vertical axis, and where a pixel of the plot lies on it.
TimeRange map_bytes(const MemoryScene& scene);

}  // namespace spillway::gui
