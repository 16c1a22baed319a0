// Who holds memory, under the pointer and the keys.
//
//   pointer, arrows    what is there, the next    click, Enter   what is in it; of a block: shows it on the canvas
//   Backspace, Esc, right click, click on the path above: back out; Home: all of it
#pragma once

#include <QWidget>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gui/plots/held_picture.h"

namespace spillway::gui {

class HeldView : public QWidget {
 public:
  HeldView();
  void set_theme(const Theme& theme);
  // null: nothing is known; words say why.
  void show_tree(std::shared_ptr<const studies::HeldNode> root, const QString& words);
  void set_shape(HeldShape shape);
  [[nodiscard]] HeldShape shape() const { return shape_; }
  [[nodiscard]] const std::vector<HeldCell>& cells() const { return cells_; }
  [[nodiscard]] std::optional<std::size_t> pointed() const { return pointed_; }
  // The node shown as the whole: the root, or one opened in it.
  [[nodiscard]] const studies::HeldNode* whole() const;
  [[nodiscard]] QImage picture() const;

  std::function<void(std::int64_t block)> on_block;  // chosen: the largest of it
  std::function<void(const QString& words)> on_hover;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void arrange();
  void point_at(std::optional<std::size_t> cell);
  void step(int by);
  void open(std::size_t cell);
  bool back();
  [[nodiscard]] QString words_of(const HeldCell& cell) const;

  const Theme* theme_;
  HeldShape shape_ = HeldShape::treemap;
  std::shared_ptr<const studies::HeldNode> root_;
  std::vector<const studies::HeldNode*> opened_;  // in each other
  QString words_;
  std::vector<HeldCell> cells_;
  std::optional<std::size_t> pointed_;
};

}  // namespace spillway::gui
