// Keeps keys and wheel from controls that would take them from the window. Installed on the application.
//
//   wheel       a list, number or slider takes it with the focus only, and never where it stands in a panel that
//   scrolls Ctrl+key    the window's own commands answer wherever the focus is; what was typed is entered first a
//   letter    as well, over numbers, which have no use for letters
#pragma once

#include <QObject>

class QKeyEvent;
class QMainWindow;
class QWidget;

namespace spillway::gui {

class InputGuard : public QObject {
 public:
  // Commands are the window's actions. Goes with the window.
  explicit InputGuard(QMainWindow& window);
  ~InputGuard() override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  [[nodiscard]] bool is_command(const QWidget& editor, const QKeyEvent& event) const;

  QMainWindow& window_;
};

}  // namespace spillway::gui
