// What the window opens with: three scenarios that need no GPU, the last session, recent files, and where to drop some.
#pragma once

#include <QStringList>
#include <QWidget>
#include <functional>
#include <string>
#include <vector>

class QPushButton;
class QVBoxLayout;

namespace spillway::gui {

class StartPage : public QWidget {
 public:
  StartPage();
  // last: title of the session before; empty: none.
  void show_recent(const QStringList& files, const QString& last);
  // The buttons of the bundled scenarios, in order.
  [[nodiscard]] const std::vector<QPushButton*>& starts() const { return starts_; }
  // Of everything else that comes with the program.
  [[nodiscard]] const std::vector<QPushButton*>& others() const { return others_; }

  // control: the key of what to try first; empty: nothing in particular.
  std::function<void(const QString& file, const std::string& control)> on_open;
  std::function<void()> on_browse, on_continue;

 private:
  std::vector<QPushButton*> starts_, others_;
  QPushButton* last_;
  QVBoxLayout* recent_;
};

}  // namespace spillway::gui
