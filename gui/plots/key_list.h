// Keys of the canvas, in one list: what the dialog of keys shows, and tests press.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace spillway::gui {

struct KeyRow {
  QStringList keys;                    // as QKeySequence takes them; none: the mouse alone
  QString mouse;                       // besides; may be empty
  QString words;                       // what they do
  [[nodiscard]] QString text() const;  // "W, S, wheel"
};

// Keys of the canvas; actions have theirs themselves.
std::vector<KeyRow> canvas_keys();

}  // namespace spillway::gui
