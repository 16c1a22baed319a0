// Colours of the window's own pictures, light and dark. Work is in Okabe and Ito's colours, which people with
// colour-blindness can tell apart, as in the pictures of `spillway run --timeline`.
#pragma once

#include <QColor>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gui/canvas/span_lane.h"

class QApplication;

namespace spillway::gui {

struct Theme {
  bool is_dark = false;
  QColor background, panel, text, muted, grid, accent, good, bad, warning;
  std::array<QColor, most_span_colors> work;  // by WorkColor
  std::vector<QColor> kinds;                  // of memory owners, in order of size; taken in turn
  QColor allocated, reserved, capacity;

  // A colour at a run's busy level, over the background.
  [[nodiscard]] std::uint32_t run_color(std::uint8_t color, std::uint8_t level) const;
  // As a baseline is drawn: half way to the background.
  [[nodiscard]] QColor ghost(const QColor& color) const;
  // Black or white, whichever reads better on it.
  [[nodiscard]] static QColor text_on(const QColor& color);
};

const Theme& light_theme();
const Theme& dark_theme();
// Palette and style sheet of the whole program.
void apply_theme(QApplication& app, const Theme& theme);

}  // namespace spillway::gui
