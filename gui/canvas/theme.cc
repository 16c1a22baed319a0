#include "gui/canvas/theme.h"

#include <QApplication>
#include <QPalette>
#include <QString>
#include <QStyleFactory>

#include "sim/replay/timeline_lanes.h"

namespace spillway::gui {
namespace {

QColor mixed(const QColor& a, const QColor& b, double part) {
  const auto channel = [part](int x, int y) { return static_cast<int>(x * (1 - part) + y * part + 0.5); };
  return {channel(a.red(), b.red()), channel(a.green(), b.green()), channel(a.blue(), b.blue())};
}

void set_work(Theme& theme) {
  static_assert(work_color_count == most_span_colors);
  for (int i = 0; i < work_color_count; ++i) {
    const std::string_view fill = fill_of(static_cast<WorkColor>(i));
    QColor color(QString::fromLatin1(fill.data(), static_cast<qsizetype>(fill.size())));
    if (theme.is_dark && static_cast<WorkColor>(i) == WorkColor::other) color = QColor("#8C8C8C");
    if (theme.is_dark && static_cast<WorkColor>(i) == WorkColor::waiting) color = QColor("#4A4F57");
    theme.work[static_cast<std::size_t>(i)] = color;
  }
  for (const char* color : {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"})
    theme.kinds.emplace_back(color);
}

Theme make_light() {
  Theme theme;
  theme.background = QColor("#FFFFFF");
  theme.panel = QColor("#F3F4F6");
  theme.text = QColor("#1B1F24");
  theme.muted = QColor("#5A626D");
  theme.grid = QColor("#DDE1E6");
  theme.accent = QColor("#0B63A5");
  theme.good = QColor("#00694C");
  theme.bad = QColor("#B3261E");
  theme.warning = QColor("#8A5A00");
  theme.allocated = QColor("#0072B2");
  theme.reserved = QColor("#E69F00");
  theme.capacity = QColor("#B3261E");
  set_work(theme);
  return theme;
}

Theme make_dark() {
  Theme theme;
  theme.is_dark = true;
  theme.background = QColor("#16191D");
  theme.panel = QColor("#1F2329");
  theme.text = QColor("#E8EAED");
  theme.muted = QColor("#A3ABB6");
  theme.grid = QColor("#343A43");
  theme.accent = QColor("#6FB7F0");
  theme.good = QColor("#5FD3A8");
  theme.bad = QColor("#FF8A80");
  theme.warning = QColor("#F2C14E");
  theme.allocated = QColor("#56B4E9");
  theme.reserved = QColor("#E69F00");
  theme.capacity = QColor("#FF8A80");
  set_work(theme);
  return theme;
}

QPalette palette_of(const Theme& theme) {
  QPalette palette;
  palette.setColor(QPalette::Window, theme.panel);
  palette.setColor(QPalette::WindowText, theme.text);
  palette.setColor(QPalette::Base, theme.background);
  palette.setColor(QPalette::AlternateBase, theme.panel);
  palette.setColor(QPalette::Text, theme.text);
  palette.setColor(QPalette::PlaceholderText, theme.muted);
  palette.setColor(QPalette::Button, theme.panel);
  palette.setColor(QPalette::ButtonText, theme.text);
  palette.setColor(QPalette::ToolTipBase, theme.panel);
  palette.setColor(QPalette::ToolTipText, theme.text);
  palette.setColor(QPalette::Highlight, theme.accent);
  palette.setColor(QPalette::HighlightedText, Theme::text_on(theme.accent));
  palette.setColor(QPalette::Link, theme.accent);
  palette.setColor(QPalette::Light, mixed(theme.panel, QColor(Qt::white), theme.is_dark ? 0.12 : 0.6));
  palette.setColor(QPalette::Midlight, mixed(theme.panel, theme.grid, 0.5));
  palette.setColor(QPalette::Mid, theme.grid);
  palette.setColor(QPalette::Dark, mixed(theme.grid, QColor(Qt::black), 0.3));
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
  const double luminance = 0.299 * color.red() + 0.587 * color.green() + 0.114 * color.blue();
  return luminance > 140 ? QColor("#101215") : QColor("#FFFFFF");
}

const Theme& light_theme() {
  static const Theme theme = make_light();
  return theme;
}

const Theme& dark_theme() {
  static const Theme theme = make_dark();
  return theme;
}

void apply_theme(QApplication& app, const Theme& theme) {
  app.setStyle(QStyleFactory::create("Fusion"));
  app.setPalette(palette_of(theme));
  app.setStyleSheet(QString("QToolTip { color: %1; background: %2; border: 1px solid %3; padding: 4px; }")
                        .arg(theme.text.name(), theme.panel.name(), theme.grid.name()));
}

}  // namespace spillway::gui
