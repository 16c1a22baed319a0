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
  QString shown, all;
  int used = 0;
  bool is_full = false;
  for (const auto& [color, words] : entries_) {
    const QString entry =
        QString("<span style='color:%1'>&#9632;</span> %2 &nbsp; ").arg(color.name(), words.toHtmlEscaped());
    used += fontMetrics().horizontalAdvance("■ " + words + "   ");
    is_full = is_full || used > width();
    if (!is_full) shown += entry;
    all += entry;
  }
  setText(shown);
  setToolTip(all);
}

}  // namespace spillway::gui
