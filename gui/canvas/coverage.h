// Boxes smaller than a pixel, drawn by the share of each pixel that they cover.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::gui {

// Pixels of 32 bits, 0xAARRGGBB, rows `pitch` pixels apart.
struct PixelRaster {
  std::uint32_t* pixels = nullptr;
  int width = 0, height = 0, pitch = 0;
};

// Boxes that don't overlap, added up. Time and memory: O(rows of boxes), then O(pixels of the rows that have any).
class Coverage {
 public:
  // width, height: of the raster, in pixels.
  Coverage(int width, int height) : width_(width), rows_(static_cast<std::size_t>(height)) {}

  // [left, right) x [top, bottom), in pixels from the raster's upper left corner, cut at its edges.
  void add(double left, double right, double top, double bottom, std::uint32_t color);

  // Blends each pixel with the mean colour of its boxes, by the share that they cover. The blend is never less than a
  // quarter, so that one small block is seen, and partly covered pixels differ from full ones.
  void paint(const PixelRaster& raster) const;

 private:
  // Changes from the pixel before: of the share, in 65,536ths, and of the colours by it.
  struct Sums {
    std::int32_t share = 0, red = 0, green = 0, blue = 0;
    [[nodiscard]] bool is_change() const { return (share | red | green | blue) != 0; }
  };
  void change(std::vector<Sums>& row, std::size_t x, std::int32_t share, std::uint32_t color);

  int width_;
  std::vector<std::vector<Sums>> rows_;  // of width + 2, or empty: nothing there
};

}  // namespace spillway::gui
