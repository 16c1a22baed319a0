// One field for all there is: commands, keys with a value ("mb 16"), models, machines, variants, views. A few letters
// name them, Enter does it.
#pragma once

#include <QDialog>
#include <QString>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace spillway::gui {

struct PaletteItem {
  QString text;    // as it is named, and found
  QString detail;  // behind it: keys, the present value
  QString group;   // "command", "key", "model"
  bool can_run = true;
  std::function<void()> run;
};

class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  explicit CommandPalette(QWidget* parent);
  // made_of: what the words that were typed say by themselves, before everything that is found by name.
  void offer(std::vector<PaletteItem> items, std::function<std::vector<PaletteItem>(const QString& words)> made_of);
  // For tests.
  [[nodiscard]] QLineEdit& line() { return *line_; }
  [[nodiscard]] QListWidget& list() { return *list_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill(const QString& words);
  void run();
  QLineEdit* line_;
  QListWidget* list_;
  std::vector<PaletteItem> items_, shown_;
  std::function<std::vector<PaletteItem>(const QString&)> made_of_;
};

}  // namespace spillway::gui
