// A message in the window: what is wrong and the remedy. It takes no focus and loses no state.
#pragma once

#include <QFrame>

#include "gui/canvas/theme.h"
#include "gui/workspace/simulation.h"

class QLabel;

namespace spillway::gui {

class MessageBar : public QFrame {
 public:
  MessageBar();
  void show_error(const SimulationError& error);
  void show_note(const QString& text);
  void set_theme(const Theme& theme);
  [[nodiscard]] QString text() const;

 private:
  void dress();
  const Theme* theme_;
  bool is_error_ = false;
  QLabel *what_, *remedy_;
};

}  // namespace spillway::gui
