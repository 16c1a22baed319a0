// The page that the window opens with: three scenarios that need no GPU, the other bundled ones, the last session,
// recent files, and where to drop some. Each scenario has a stamp of its memory and its verdict (thumbnails.h).
#pragma once

#include <QImage>
#include <QStringList>
#include <QWidget>
#include <functional>
#include <string>
#include <vector>

#include "gui/panels/thumbnails.h"

class QLabel;
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
  // The buttons of all other bundled scenarios.
  [[nodiscard]] const std::vector<QPushButton*>& others() const { return others_; }
  void set_theme(const Theme& theme);
  // All stamps are there.
  [[nodiscard]] bool is_complete() const { return !thumbnails_.is_running(); }
  [[nodiscard]] QImage stamp_of(const QString& file) const;  // null: none yet, or there is no such card

  // control: the key of what to try first; empty: nothing in particular.
  std::function<void(const QString& file, const std::string& control)> on_open;
  std::function<void()> on_browse, on_continue;

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  // A scenario's place on the page.
  struct Card {
    QString file, title;
    QPushButton* button = nullptr;
    QLabel *picture = nullptr, *verdict = nullptr;  // null: the button has both
    QImage stamp;
  };
  void stamp(const QString& file, const QImage& picture, const QString& verdict);
  void find_stamps();

  std::vector<Card> cards_;
  std::vector<QPushButton*> starts_, others_;
  QPushButton* last_;
  QVBoxLayout* recent_;
  const Theme* theme_;
  Thumbnails thumbnails_;  // last: ends before what it speaks to
};

}  // namespace spillway::gui
