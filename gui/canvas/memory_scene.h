// An allocator's blocks and curves, made ready to be painted.
#pragma once

#include <memory>

#include "gui/canvas/address_picture.h"
#include "gui/canvas/owner_stack.h"
#include "gui/canvas/step_curve.h"
#include "sim/pictures/memory_picture.h"

namespace spillway::gui {

// A MemoryPicture made ready: curves folded on demand, blocks squeezed. Immutable.
struct MemoryScene {
  MemoryPicture picture;  // without its curve and changes
  StepCurve allocated, reserved;
  AddressMap map;
  OwnerStack owners;
  std::vector<Token> tokens;  // by kind
  TimeRange whole;
};
// by_line: the picture's kinds are lines of a program, and the largest have colours of their own.
std::shared_ptr<const MemoryScene> memory_scene(MemoryPicture picture, bool by_line = false);

// The bytes of the map's vertical axis.
TimeRange map_bytes(const MemoryScene& scene);

}  // namespace spillway::gui
