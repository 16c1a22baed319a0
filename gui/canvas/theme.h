// Colours of the window's own pictures, light and dark, by the tokens (tokens.h); palette, style and type of the
// program.
#pragma once

#include <QColor>
#include <array>
#include <cstdint>
#include <string_view>

#include "gui/canvas/span_lane.h"
#include "gui/canvas/tokens.h"

class QApplication;

namespace spillway::gui {

struct Theme {
  bool is_dark = false;
  TokenColors tokens;
  QColor background, panel, text, muted, grid, accent, good, bad, warning;  // shorter to say than their tokens
  std::array<QColor, most_span_colors> work;                                // by WorkColor
  QColor allocated, reserved, capacity;

  [[nodiscard]] const QColor& operator[](Token token) const { return tokens[static_cast<std::size_t>(token)]; }
  // A colour at a run's busy level, over the background.
  [[nodiscard]] std::uint32_t run_color(std::uint8_t color, std::uint8_t level) const;
  // As a baseline is drawn: half way to the background.
  [[nodiscard]] QColor ghost(const QColor& color) const;
  // Black or white, whichever contrasts more with it.
  [[nodiscard]] static QColor text_on(const QColor& color);
};

const Theme& light_theme();
const Theme& dark_theme();
// Palette, style, type and style sheet of the whole program.
void apply_theme(QApplication& app, const Theme& theme);

}  // namespace spillway::gui
