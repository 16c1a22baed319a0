// Ctrl+P: every command of the window by a few letters of its name.
#pragma once

#include <QDialog>
#include <QList>

class QAction;
class QLineEdit;
class QListWidget;

namespace spillway::gui {

class CommandPalette : public QDialog {
 public:
  explicit CommandPalette(QWidget* parent);
  void offer(const QList<QAction*>& actions);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill(const QString& words);
  void run();
  QList<QAction*> actions_;
  QLineEdit* line_;
  QListWidget* list_;
};

}  // namespace spillway::gui
