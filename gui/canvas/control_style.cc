#include "gui/canvas/control_style.h"

#include <QPainter>
#include <QPainterPath>
#include <QStyleFactory>
#include <QStyleOption>

#include "gui/canvas/theme.h"

namespace spillway::gui {
namespace {

constexpr double radius = 5;
constexpr double ring = 2;  // of focus

bool is_on(const QStyleOption& option, QStyle::StateFlag flag) { return (option.state & flag) != 0; }

}  // namespace

ControlStyle::ControlStyle(const Theme& theme) : QProxyStyle(QStyleFactory::create("Fusion")), tokens_(theme.tokens) {}

int ControlStyle::pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const {
  if (metric == PM_IndicatorWidth || metric == PM_IndicatorHeight) return 16;
  return QProxyStyle::pixelMetric(metric, option, widget);
}

void ControlStyle::box(QPainter& painter, const QRectF& rect, const QStyleOption& option, Token fill) const {
  const bool focus = is_on(option, State_HasFocus), enabled = is_on(option, State_Enabled);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const double width = focus ? ring : 1;
  painter.setPen(QPen(color(focus ? Token::accent : enabled ? Token::control : Token::line), width));
  painter.setBrush(color(fill));
  painter.drawRoundedRect(rect.adjusted(width / 2, width / 2, -width / 2, -width / 2), radius, radius);
  painter.restore();
}

void ControlStyle::arrow(QPainter& painter, const QRectF& in, bool up, bool enabled) const {
  const double half = 3.5, high = 2.2;
  const QPointF middle = in.center();
  const double base = up ? high : -high;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(color(enabled ? Token::muted : Token::line), 1.5));
  painter.drawPolyline(QPolygonF({middle + QPointF(-half, base / 2), middle + QPointF(0, -base / 2 - base / 4),
                                  middle + QPointF(half, base / 2)}));
  painter.restore();
}

void ControlStyle::check_box(QPainter& painter, const QStyleOption& option) const {
  const bool checked = is_on(option, State_On), enabled = is_on(option, State_Enabled);
  const QRectF rect = QRectF(option.rect).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(color(checked ? Token::accent : enabled ? Token::control : Token::line), 1));
  painter.setBrush(color(checked ? Token::accent : Token::raised));
  painter.drawRoundedRect(rect, 3, 3);
  if (checked) {
    painter.setPen(QPen(color(Token::on_accent), 2));
    const QPointF middle = rect.center();
    painter.drawPolyline(QPolygonF({middle + QPointF(-4, 0), middle + QPointF(-1, 3), middle + QPointF(4, -3)}));
  }
  painter.restore();
}

void ControlStyle::slider(QPainter& painter, const QStyleOptionComplex& option, const QWidget* widget) const {
  const QRectF handle = subControlRect(CC_Slider, &option, SC_SliderHandle, widget);
  const QRectF all = option.rect;
  const double middle = all.center().y();
  const bool enabled = is_on(option, State_Enabled);
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color(enabled ? Token::control : Token::line));
  painter.drawRoundedRect(QRectF(all.left() + 2, middle - 1, all.width() - 4, 2), 1, 1);
  painter.setBrush(color(enabled ? Token::accent : Token::line));
  painter.drawRoundedRect(QRectF(all.left() + 2, middle - 1.5, handle.center().x() - all.left() - 2, 3), 1.5, 1.5);
  const bool focus = is_on(option, State_HasFocus);
  painter.setPen(QPen(color(focus ? Token::accent : enabled ? Token::control : Token::line), focus ? ring : 1));
  painter.setBrush(color(Token::raised));
  painter.drawEllipse(handle.center(), 6, 6);
  painter.restore();
}

void ControlStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                 const QWidget* widget) const {
  if (element == PE_IndicatorCheckBox) return check_box(*painter, *option);
  if (element == PE_FrameLineEdit) return;  // with its panel
  if (element == PE_PanelButtonCommand) {
    const bool down = is_on(*option, State_Sunken) || is_on(*option, State_On);
    const bool hover = is_on(*option, State_MouseOver) && is_on(*option, State_Enabled);
    return box(*painter, option->rect, *option, down || hover ? Token::accent_surface : Token::raised);
  }
  if (element == PE_PanelLineEdit) {
    // Of a spin box or a combo box the whole is one box.
    const auto* const frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
    if (frame != nullptr && frame->lineWidth > 0) box(*painter, option->rect, *option, Token::raised);
    return;
  }
  if (element == PE_FrameFocusRect) {
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(color(Token::accent), ring));
    painter->setBrush(Qt::NoBrush);
    painter->drawRoundedRect(QRectF(option->rect).adjusted(1, 1, -1, -1), 3, 3);
    painter->restore();
    return;
  }
  QProxyStyle::drawPrimitive(element, option, painter, widget);
}

void ControlStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                                      const QWidget* widget) const {
  const bool enabled = is_on(*option, State_Enabled);
  if (control == CC_Slider) {
    if (const auto* slid = qstyleoption_cast<const QStyleOptionSlider*>(option);
        slid != nullptr && slid->orientation == Qt::Horizontal)
      return slider(*painter, *option, widget);
  }
  if (control == CC_SpinBox) {
    box(*painter, option->rect, *option, Token::raised);
    arrow(*painter, subControlRect(control, option, SC_SpinBoxUp, widget), true, enabled);
    arrow(*painter, subControlRect(control, option, SC_SpinBoxDown, widget), false, enabled);
    return;
  }
  if (control == CC_ComboBox) {
    box(*painter, option->rect, *option, Token::raised);
    arrow(*painter, subControlRect(control, option, SC_ComboBoxArrow, widget), false, enabled);
    return;
  }
  QProxyStyle::drawComplexControl(control, option, painter, widget);
}

}  // namespace spillway::gui
