// Blocks at their addresses over time, drawn straight into the rows of a raster.
//
// Unused addresses are squeezed out: the axis is the used addresses in order, with the seams remembered. Blocks smaller
// than a pixel are drawn first, by the share of it that they cover (coverage.h). Many small blocks far from each other
// are a tint, not a wall, and hide nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/canvas/coverage.h"
#include "gui/canvas/time_axis.h"
#include "sim/pictures/memory_picture.h"

namespace spillway::gui {

class AddressMap {
 public:
  struct Block {
    std::int64_t begin = 0, end = 0;  // time
    std::int64_t low = 0, high = 0;   // squeezed addresses, half-open
    std::uint32_t kind = 0;
    std::uint32_t source = 0;  // index in MemoryPicture::blocks
  };
  AddressMap() = default;
  // O(blocks log blocks).
  explicit AddressMap(const MemoryPicture& picture);

  [[nodiscard]] std::int64_t height() const { return height_; }  // squeezed bytes
  [[nodiscard]] TimeRange whole() const { return whole_; }
  [[nodiscard]] const std::vector<std::int64_t>& seams() const { return seams_; }  // squeezed, ascending
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  // Index in blocks() of what lies there, -1: nothing. O(blocks).
  [[nodiscard]] std::int64_t at(std::int64_t time, std::int64_t squeezed) const;

  // The lowest address at the bottom. colors: by kind. bytes: the squeezed addresses shown. O(blocks + pixels filled).
  void draw(const PixelRaster& raster, TimeRange view, TimeRange bytes, const std::vector<std::uint32_t>& colors) const;

 private:
  std::vector<Block> blocks_;  // in order of address
  std::vector<std::int64_t> seams_;
  std::int64_t height_ = 0;
  TimeRange whole_;
};

}  // namespace spillway::gui
