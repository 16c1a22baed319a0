#include "gui/panels/input_guard.h"

#include <QAbstractSpinBox>
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QMainWindow>
#include <QScrollArea>
#include <QSlider>
#include <algorithm>

namespace spillway::gui {
namespace {

// The control that a widget is, or is a part of; null: none.
QWidget* control_of(QWidget* widget) {
  for (; widget != nullptr; widget = widget->isWindow() ? nullptr : widget->parentWidget()) {
    const bool is_slider = qobject_cast<QSlider*>(widget) != nullptr;
    if (is_slider || qobject_cast<QComboBox*>(widget) != nullptr || qobject_cast<QAbstractSpinBox*>(widget) != nullptr)
      return widget;
  }
  return nullptr;
}

bool is_in_scroll_area(const QWidget* widget) {
  while (widget != nullptr && qobject_cast<const QScrollArea*>(widget) == nullptr) widget = widget->parentWidget();
  return widget != nullptr;
}

// Ends the entry that is under way as leaving the control would.
void enter_text(QWidget& editor) {
  editor.clearFocus();
  editor.setFocus();
}

}  // namespace

InputGuard::InputGuard(QMainWindow& window) : QObject(&window), window_(window) { qApp->installEventFilter(this); }

InputGuard::~InputGuard() { qApp->removeEventFilter(this); }

bool InputGuard::is_command(const QWidget& editor, const QKeyEvent& event) const {
  if (editor.window() != &window_) return false;
  const bool is_letter = event.modifiers() == Qt::NoModifier && editor.inherits("QAbstractSpinBox");
  if (!is_letter && (event.modifiers() & Qt::ControlModifier) == 0) return false;
  const QKeySequence keys(event.keyCombination());
  const QList<QAction*> actions = window_.actions();
  return std::any_of(actions.begin(), actions.end(),
                     [&](const QAction* action) { return action->shortcuts().contains(keys); });
}

bool InputGuard::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::Wheel && event->type() != QEvent::ShortcutOverride) return false;
  auto* const widget = qobject_cast<QWidget*>(watched);
  if (widget == nullptr) return false;
  if (event->type() == QEvent::Wheel) {
    const QWidget* const control = control_of(widget);
    const bool takes = control == nullptr || (control->hasFocus() && !is_in_scroll_area(control));
    if (!takes) event->ignore();  // goes on to the parent
    return !takes;
  }
  if (!is_command(*widget, *static_cast<QKeyEvent*>(event))) return false;
  if (widget->hasFocus() && control_of(widget) != nullptr) enter_text(*widget);
  event->ignore();  // the editor doesn't take it: it is a shortcut
  return true;
}

}  // namespace spillway::gui
