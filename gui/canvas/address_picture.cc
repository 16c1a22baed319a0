#include "gui/canvas/address_picture.h"

#include <algorithm>

#include "base/stop.h"
#include "gui/canvas/pixel_run.h"

namespace spillway::gui {
namespace {

// Gaps smaller than this are the allocator's own rests, and stay.
constexpr std::uint64_t smallest_gap = 2 << 20;

}  // namespace

AddressMap::AddressMap(const MemoryPicture& picture) : whole_{picture.begin, std::max(picture.end, picture.begin + 1)} {
  blocks_.reserve(picture.blocks.size());
  std::uint64_t used_until = 0;
  std::int64_t squeezed = 0;  // what address 0 would be, given the gaps before
  bool first = true;
  for (std::size_t i = 0; i < picture.blocks.size(); ++i) {
    check_stop();
    const MemoryPicture::Block& block = picture.blocks[i];
    if (first || block.address > used_until + smallest_gap) {
      if (!first) seams_.push_back(height_);
      squeezed = height_ - static_cast<std::int64_t>(block.address);
      first = false;
    }
    const std::int64_t low = static_cast<std::int64_t>(block.address) + squeezed;
    blocks_.push_back({block.begin, block.end, low, low + block.size.count(), static_cast<std::uint32_t>(block.kind),
                       static_cast<std::uint32_t>(i)});
    used_until = std::max(used_until, block.address + static_cast<std::uint64_t>(block.size.count()));
    height_ = std::max(height_, low + block.size.count());
  }
}

std::int64_t AddressMap::at(std::int64_t time, std::int64_t squeezed) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (block.low <= squeezed && squeezed < block.high && block.begin <= time && time < block.end)
      return static_cast<std::int64_t>(i);
  }
  return -1;
}

void AddressMap::draw(const PixelRaster& raster, TimeRange view, TimeRange bytes,
                      const std::vector<std::uint32_t>& colors) const {
  if (raster.width <= 0 || raster.height <= 0) return;
  const double x_scale = raster.width / static_cast<double>(view.length());
  const double y_scale = raster.height / static_cast<double>(bytes.length());
  struct Box {
    int left, right, top, bottom;
    std::uint32_t color;
  };
  const auto fill = [&raster](const Box& box) {
    std::uint32_t* row = raster.pixels + static_cast<std::ptrdiff_t>(box.top) * raster.pitch;
    for (int y = box.top; y < box.bottom; ++y, row += raster.pitch)
      fill_run(row + box.left, row + box.right, box.color);
  };
  Coverage small(raster.width, raster.height);
  std::vector<Box> large;  // drawn over the small ones
  for (const Block& block : blocks_) {
    if (block.end <= view.begin || block.begin >= view.end || block.high <= bytes.begin || block.low >= bytes.end)
      continue;
    // Positive after the cut, so that adding a half rounds.
    const double x0 = static_cast<double>(std::max(block.begin, view.begin) - view.begin) * x_scale;
    const double x1 = static_cast<double>(std::min(block.end, view.end) - view.begin) * x_scale;
    const double y0 = static_cast<double>(bytes.end - std::min(block.high, bytes.end)) * y_scale;
    const double y1 = static_cast<double>(bytes.end - std::max(block.low, bytes.begin)) * y_scale;
    Box box{std::min(static_cast<int>(x0), raster.width - 1), 0, std::min(static_cast<int>(y0), raster.height - 1), 0,
            colors[block.kind % colors.size()]};
    box.right = std::clamp(static_cast<int>(x1 + 0.5), box.left + 1, raster.width);
    box.bottom = std::clamp(static_cast<int>(y1 + 0.5), box.top + 1, raster.height);
    if (x1 - x0 < 1 || y1 - y0 < 1)
      small.add(x0, x1, y0, y1, box.color);
    else
      large.push_back(box);
  }
  small.paint(raster);
  for (const Box& box : large) fill(box);
}

}  // namespace spillway::gui
