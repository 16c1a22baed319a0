// The ways of an answer as rows, each opened below itself: what it changes, what that is worth, who runs it, what was
// folded under it.
//
//   1  Adam on the CPU, fused loss            2.09 s   -47 %
//      [=====    ] 17.6 GiB left  torchtitan* +1
#pragma once

#include <QFrame>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "gui/canvas/theme.h"
#include "studies/answer/answer.h"

class QVBoxLayout;

namespace spillway::gui {

class WayRow;

class WayList : public QWidget {
 public:
  WayList();
  void set_theme(const Theme& theme);
  // In place of what is there. Null: none.
  void show(std::shared_ptr<const studies::Answer> answer);
  [[nodiscard]] int count() const { return static_cast<int>(rows_.size()); }
  [[nodiscard]] int current() const { return current_; }  // -1: none
  [[nodiscard]] std::vector<int> ticked() const;          // to be made together, in their order
  // Opened, in sight and in focus.
  void choose(int way);
  [[nodiscard]] QWidget& row(int way);
  [[nodiscard]] QWidget& apply_button(int way);  // of the one that is opened

  std::function<void(int way)> on_point;  // by pointer or arrows; -1: none
  std::function<void(int way, bool as_variant)> on_apply;
  std::function<void()> on_tick;
  std::function<void(QWidget&)> on_reveal;  // is to be brought into sight

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  friend class WayRow;
  void apply(int way, bool as_variant);

  std::shared_ptr<const studies::Answer> answer_;
  std::vector<WayRow*> rows_;
  int current_ = -1;
  QVBoxLayout* column_;
  const Theme* theme_;
};

}  // namespace spillway::gui
