#include "gui/canvas/thumbnail.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/canvas/plot_frame.h"

namespace spillway::gui {

QImage memory_thumbnail(const MemoryScene& memory, QSize size, double ratio, const Theme& theme) {
  QImage image(size * ratio, QImage::Format_RGB32);
  image.fill(theme[Token::sunken]);
  const std::int64_t capacity = memory.picture.capacity.count(), peak = memory.owners.peak();
  const bool has_line = capacity > 0 && peak >= capacity / 2;
  const std::int64_t most = std::max<std::int64_t>(1, std::max(peak, has_line ? capacity : 0));
  const int height = image.height() - 1;  // a row above the highest
  const auto row = [&](std::int64_t bytes) {
    const double part = static_cast<double>(bytes) / static_cast<double>(most);
    return image.height() - static_cast<int>(std::lround(part * height));
  };
  const auto columns = memory.owners.fold(TimeAxis(memory.whole, std::max(1, image.width())));
  for (std::size_t x = 0; x < columns.size(); ++x) {
    std::int64_t below = 0;
    for (std::size_t owner = 0; owner < most_owners; ++owner) {
      if (columns[x][owner] <= 0) continue;
      const int bottom = row(below);
      below += columns[x][owner];
      fill_rows(image, static_cast<int>(x), static_cast<int>(x) + 1, row(below), bottom,
                theme[memory.owners.owners()[owner].token].rgb());
    }
  }
  if (has_line) {
    const int y = row(capacity), thick = std::max(1, static_cast<int>(ratio));
    fill_rows(image, 0, image.width(), std::max(0, y - thick), y, theme.capacity.rgb());
  }
  image.setDevicePixelRatio(ratio);
  return image;
}

}  // namespace spillway::gui
