#include "gui/plots/key_list.h"

#include <QCoreApplication>
#include <QKeySequence>

namespace spillway::gui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("Keys", text); }

}  // namespace

QString KeyRow::text() const {
  QStringList parts;
  for (const QString& key : keys) parts.append(QKeySequence(key).toString(QKeySequence::NativeText));
  if (!mouse.isEmpty()) parts.append(mouse);
  return parts.join(", ");
}

std::vector<KeyRow> canvas_keys() {
  return {
      {{"W", "S", "+", "-"}, tr("wheel"), tr("zoom")},
      {{"A", "D", "Left", "Right"}, tr("Shift+wheel"), tr("earlier, later")},
      {{"Up", "Down"}, tr("Ctrl+wheel"), tr("tracks up and down")},
      {{"Shift+W", "Shift+S"}, tr("Ctrl+wheel on the address map"), tr("zoom in addresses")},
      {{"Shift+A", "Shift+D"}, tr("Ctrl+Shift+wheel there"), tr("lower, higher addresses")},
      {{"1", "2", "3"}, {}, tr("GPU time, host time, program order")},
      {{"C"}, {}, tr("the critical path")},
      {{"M", "Shift+M"}, {}, tr("the memory of the next GPU, of the one before")},
      {{"N"}, tr("right click"), tr("write a note at the pointer")},
      {{"F"}, {}, tr("zoom to the selection")},
      {{"Home"}, {}, tr("everything")},
      {{"Esc"}, {}, tr("select nothing; or cancel what is running")},
      {{}, tr("drag"), tr("select a range; its table is below")},
      {{}, tr("Alt+drag"), tr("select a range of the tracks that it goes over")},
  };
}

}  // namespace spillway::gui
