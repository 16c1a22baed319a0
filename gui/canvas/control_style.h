// Controls in the window's tokens: Fusion with edges of 3:1 and a focus ring of two pixels. Fusion's own edges contrast
// 1.2:1 with a panel.
#pragma once

#include <QProxyStyle>

#include "gui/canvas/tokens.h"

namespace spillway::gui {

struct Theme;

class ControlStyle : public QProxyStyle {
 public:
  explicit ControlStyle(const Theme& theme);

  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  [[nodiscard]] int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override;

 private:
  [[nodiscard]] const QColor& color(Token token) const { return tokens_[static_cast<std::size_t>(token)]; }
  // A rounded box with the edge of a control, and the ring of focus.
  void box(QPainter& painter, const QRectF& rect, const QStyleOption& option, Token fill) const;
  void arrow(QPainter& painter, const QRectF& in, bool up, bool enabled) const;
  void check_box(QPainter& painter, const QStyleOption& option) const;
  void slider(QPainter& painter, const QStyleOptionComplex& option, const QWidget* widget) const;

  const TokenColors& tokens_;
};

}  // namespace spillway::gui
