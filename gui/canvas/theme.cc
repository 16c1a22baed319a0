#include "gui/canvas/theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QFontMetricsF>
#include <QPalette>
#include <QString>
#include <cmath>

#include "gui/canvas/control_style.h"

namespace spillway::gui {
namespace {

QColor mixed(const QColor& a, const QColor& b, double part) {
  const auto channel = [part](int x, int y) { return static_cast<int>(x * (1 - part) + y * part + 0.5); };
  return {channel(a.red(), b.red()), channel(a.green(), b.green()), channel(a.blue(), b.blue())};
}

Theme themed(bool is_dark) {
  Theme theme;
  theme.is_dark = is_dark;
  theme.tokens = is_dark ? dark_tokens() : light_tokens();
  theme.background = theme[Token::canvas];
  theme.panel = theme[Token::panel];
  theme.text = theme[Token::text];
  theme.muted = theme[Token::muted];
  theme.grid = theme[Token::grid];
  theme.accent = theme[Token::accent];
  theme.good = theme[Token::good];
  theme.bad = theme.capacity = theme[Token::bad];
  theme.warning = theme[Token::warn];
  theme.allocated = theme[Token::forward];
  theme.reserved = theme[Token::muted];
  static_assert(work_color_count == most_span_colors);
  for (int i = 0; i < work_color_count; ++i)
    theme.work[static_cast<std::size_t>(i)] = theme[work_token(static_cast<WorkColor>(i))];
  return theme;
}

// Figures stand in columns: digits of one width, by the desktop's own font where it has them.
QFont base_font() {
  constexpr int base_pixels = 13;
  const auto has_even_digits = [](const QFont& font) {
    const QFontMetricsF metrics(font);
    const double width = metrics.horizontalAdvance(QChar('0'));
    for (char digit = '1'; digit <= '9'; ++digit)
      if (std::abs(metrics.horizontalAdvance(QChar(digit)) - width) > 0.01) return false;
    return true;
  };
  QFont font = QFontDatabase::systemFont(QFontDatabase::GeneralFont);
  font.setPixelSize(base_pixels);
  for (const char* family : {"Noto Sans", "DejaVu Sans"}) {
    if (has_even_digits(font)) break;
    if (QFontDatabase::hasFamily(family)) font.setFamily(family);
  }
  return font;
}

QPalette palette_of(const Theme& theme) {
  QPalette palette;
  palette.setColor(QPalette::Window, theme.panel);
  palette.setColor(QPalette::WindowText, theme.text);
  palette.setColor(QPalette::Base, theme.background);
  palette.setColor(QPalette::AlternateBase, theme[Token::panel]);
  palette.setColor(QPalette::Text, theme.text);
  palette.setColor(QPalette::PlaceholderText, theme.muted);
  palette.setColor(QPalette::Button, theme[Token::raised]);
  palette.setColor(QPalette::ButtonText, theme.text);
  palette.setColor(QPalette::ToolTipBase, theme.panel);
  palette.setColor(QPalette::ToolTipText, theme.text);
  palette.setColor(QPalette::Highlight, theme.accent);
  palette.setColor(QPalette::HighlightedText, theme[Token::on_accent]);
  palette.setColor(QPalette::Link, theme.accent);
  palette.setColor(QPalette::Light, mixed(theme.panel, QColor(Qt::white), theme.is_dark ? 0.12 : 0.6));
  palette.setColor(QPalette::Midlight, mixed(theme.panel, theme.grid, 0.5));
  palette.setColor(QPalette::Mid, theme[Token::line]);
  palette.setColor(QPalette::Dark, theme[Token::control]);
  palette.setColor(QPalette::Shadow, QColor(Qt::black));
  for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, mixed(theme.text, theme.panel, 0.55));
  return palette;
}

}  // namespace

std::uint32_t Theme::run_color(std::uint8_t color, std::uint8_t level) const {
  return mixed(background, work[color], 0.34 + 0.22 * level).rgb();
}

QColor Theme::ghost(const QColor& color) const { return mixed(color, background, 0.6); }

QColor Theme::text_on(const QColor& color) {
  const QColor black("#0B0D10"), white("#FFFFFF");
  return contrast(black, color) >= contrast(white, color) ? black : white;
}

const Theme& light_theme() {
  static const Theme theme = themed(false);
  return theme;
}

const Theme& dark_theme() {
  static const Theme theme = themed(true);
  return theme;
}

void apply_theme(QApplication& app, const Theme& theme) {
  app.setStyle(new ControlStyle(theme));  // the application's
  app.setFont(base_font());
  app.setPalette(palette_of(theme));
  app.setStyleSheet(QString("QToolTip { color: %1; background: %2; border: 1px solid %3; padding: 4px; }")
                        .arg(theme.text.name(), theme[Token::raised].name(), theme[Token::control].name()));
}

}  // namespace spillway::gui
