#include "gui/canvas/coverage.h"

#include <algorithm>
#include <cmath>

namespace spillway::gui {
namespace {

constexpr double whole = 65'536;
constexpr float least_shown = 0.25F;

std::int32_t channel(std::uint32_t color, int shift) { return static_cast<std::int32_t>(color >> shift & 0xFFU); }

std::uint32_t mixed_channel(std::uint32_t below, float above, float share, int shift) {
  const float under = static_cast<float>(channel(below, shift));
  return static_cast<std::uint32_t>(std::lround(under + (above - under) * share)) << shift;
}

}  // namespace

void Coverage::change(std::vector<Sums>& row, std::size_t x, std::int32_t share, std::uint32_t color) {
  Sums& at = row[x];
  at.share += share;
  at.red += share * channel(color, 16);
  at.green += share * channel(color, 8);
  at.blue += share * channel(color, 0);
}

void Coverage::add(double left, double right, double top, double bottom, std::uint32_t color) {
  // However small, it is somewhere.
  constexpr double least_side = 1e-4;
  right = std::max(right, left + least_side);
  bottom = std::max(bottom, top + least_side);
  left = std::max(left, 0.0);
  right = std::min(right, static_cast<double>(width_));
  top = std::max(top, 0.0);
  bottom = std::min(bottom, static_cast<double>(rows_.size()));
  if (!(right > left) || !(bottom > top)) return;
  const double first = std::floor(left), last = std::floor(right);
  for (double y = std::floor(top); y < bottom; ++y) {
    // At least one 65,536th of a pixel, or it would be nowhere.
    const double height = std::min(bottom, y + 1) - std::max(top, y);
    const double least = 1 / (right - left);
    const auto share = static_cast<std::int32_t>(std::lround(std::max(height * whole, std::min(least, whole))));
    std::vector<Sums>& row = rows_[static_cast<std::size_t>(y)];
    if (row.empty()) row.resize(static_cast<std::size_t>(width_) + 2);
    // A step at a place within a pixel is one in it and the rest in the next.
    const auto step = [&](double at, double pixel, std::int32_t of) {
      const auto rest = static_cast<std::int32_t>(std::lround(of * (at - pixel)));
      change(row, static_cast<std::size_t>(pixel), of - rest, color);
      change(row, static_cast<std::size_t>(pixel) + 1, rest, color);
    };
    step(left, first, share);
    step(right, last, -share);
  }
}

void Coverage::paint(const PixelRaster& raster) const {
  for (std::size_t y = 0; y < rows_.size() && y < static_cast<std::size_t>(raster.height); ++y) {
    if (rows_[y].empty()) continue;
    std::uint32_t* const pixels = raster.pixels + static_cast<std::ptrdiff_t>(y) * raster.pitch;
    Sums sum;
    std::uint32_t below = 0, shown = 0;  // of the pixel before
    bool is_same = false;
    for (int x = 0; x < std::min(width_, raster.width); ++x) {
      const Sums& change = rows_[y][static_cast<std::size_t>(x)];
      if (change.is_change()) {
        sum.share += change.share;
        sum.red += change.red;
        sum.green += change.green;
        sum.blue += change.blue;
        is_same = false;
      }
      if (sum.share <= 0) continue;
      if (!is_same || pixels[x] != below) {
        const float share = std::min(static_cast<float>(sum.share) / static_cast<float>(whole), 1.0F);
        const float alpha = least_shown + (1 - least_shown) * share;
        const float scale = 1 / static_cast<float>(sum.share);
        below = pixels[x];
        shown = 0xFF000000U | mixed_channel(below, static_cast<float>(sum.red) * scale, alpha, 16) |
                mixed_channel(below, static_cast<float>(sum.green) * scale, alpha, 8) |
                mixed_channel(below, static_cast<float>(sum.blue) * scale, alpha, 0);
        is_same = true;
      }
      pixels[x] = shown;
    }
  }
}

}  // namespace spillway::gui
