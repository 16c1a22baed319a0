#include "gui/address_map.h"

#include <algorithm>
#include <cmath>

namespace spillway {
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

void AddressMap::draw(const Raster& raster, TimeRange view, TimeRange bytes,
                      const std::vector<std::uint32_t>& colors) const {
  if (raster.width <= 0 || raster.height <= 0) return;
  const double x_scale = raster.width / static_cast<double>(view.length());
  const double y_scale = raster.height / static_cast<double>(bytes.length());
  const auto fill = [&](const Block& block, int left, int right, int top, int bottom) {
    const std::uint32_t color = colors[block.kind % colors.size()];
    for (int y = top; y < bottom; ++y) {
      std::uint32_t* const row = raster.pixels + static_cast<std::ptrdiff_t>(y) * raster.pitch;
      std::fill(row + left, row + right, color);
    }
  };
  for (const bool small : {true, false}) {
    for (const Block& block : blocks_) {
      if (block.end <= view.begin || block.begin >= view.end || block.high <= bytes.begin || block.low >= bytes.end)
        continue;
      const double x0 = static_cast<double>(block.begin - view.begin) * x_scale;
      const double x1 = static_cast<double>(block.end - view.begin) * x_scale;
      const double y0 = static_cast<double>(bytes.end - block.high) * y_scale;
      const double y1 = static_cast<double>(bytes.end - block.low) * y_scale;
      const bool is_small = x1 - x0 < 1 || y1 - y0 < 1;
      if (is_small != small) continue;
      const int left = std::clamp(static_cast<int>(std::floor(x0)), 0, raster.width - 1);
      const int top = std::clamp(static_cast<int>(std::floor(y0)), 0, raster.height - 1);
      const int right = std::clamp(static_cast<int>(std::lround(x1)), left + 1, raster.width);
      const int bottom = std::clamp(static_cast<int>(std::lround(y1)), top + 1, raster.height);
      fill(block, left, right, top, bottom);
    }
  }
}

}  // namespace spillway
