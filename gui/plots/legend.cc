#include "gui/plots/legend.h"

#include <utility>

namespace spillway::gui {

Legend::Legend() {
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  setAlignment(Qt::AlignRight | Qt::AlignVCenter);
}

void Legend::show_entries(std::vector<std::pair<QColor, QString>> entries) {
  entries_ = std::move(entries);
  fit();
}

void Legend::resizeEvent(QResizeEvent* event) {
  QLabel::resizeEvent(event);
  fit();
}

void Legend::fit() {
  constexpr int most_lines = 2;
  QString shown, all;
  int used = 0, lines = 1;
  for (const auto& [color, words] : entries_) {
    const QString entry =
        QString("<span style='color:%1'>&#9632;</span> %2 &nbsp; ").arg(color.name(), words.toHtmlEscaped());
    const int wide = fontMetrics().horizontalAdvance("■ " + words + "   ");
    used += wide;
    if (used > width() && lines <= most_lines) {
      ++lines;
      used = wide;
      if (lines <= most_lines && !shown.isEmpty()) shown += "<br>";
    }
    if (lines <= most_lines) shown += entry;
    all += entry;
  }
  setText(shown);
  setToolTip(all);
}

}  // namespace spillway::gui
