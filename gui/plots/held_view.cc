#include "gui/plots/held_view.h"

#include <QAccessible>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "base/number_text.h"
#include "base/short_text.h"
#include "gui/canvas/plot_frame.h"

namespace spillway::gui {
namespace {

constexpr int path_height = 22;  // logical pixels, of the path above

}  // namespace

HeldView::HeldView() : theme_(&light_theme()) {
  setAccessibleName(tr("Who holds memory"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setMinimumSize(240, 120);
}

void HeldView::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

void HeldView::show_tree(std::shared_ptr<const studies::HeldNode> root, const QString& words) {
  root_ = std::move(root);
  words_ = words;
  opened_.clear();
  arrange();
}

void HeldView::set_shape(HeldShape shape) {
  shape_ = shape;
  arrange();
}

const studies::HeldNode* HeldView::whole() const { return opened_.empty() ? root_.get() : opened_.back(); }

void HeldView::arrange() {
  pointed_.reset();
  cells_.clear();
  const QRectF area = QRectF(rect()).adjusted(4, path_height, -4, -4);
  if (whole() != nullptr && area.width() > 0 && area.height() > 0) cells_ = held_cells(*whole(), shape_, area);
  update();
}

QString HeldView::words_of(const HeldCell& cell) const {
  const auto share = [&](const studies::HeldNode* of) {
    return of == nullptr || of->bytes <= Bytes(0)
               ? QString()
               : QString::fromStdString(
                     percent_text(static_cast<double>(cell.bytes.count()) / static_cast<double>(of->bytes.count())));
  };
  const QString size = QString::fromStdString(short_size(cell.bytes));
  if (cell.node == nullptr) return tr("smaller ones together: %1, %2").arg(size, share(root_.get()));
  return tr("%1: %2, %3 of all, %4 block(s)")
      .arg(QString::fromStdString(cell.node->name), size, share(root_.get()))
      .arg(cell.node->blocks);
}

QImage HeldView::picture() const { return paint_held(cells_, {size(), devicePixelRatioF(), pointed_}, *theme_); }

void HeldView::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  painter.drawImage(0, 0, picture());
  painter.setPen(theme_->muted);
  if (cells_.empty()) {
    painter.drawText(rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap, words_);
  } else {
    QString path = words_;
    for (const studies::HeldNode* const one : opened_) path += " ▸ " + QString::fromStdString(one->name);
    if (!opened_.empty()) path += tr("   (Esc: back)");
    paint_elided(painter, QRectF(8, 0, width() - 16, path_height), Qt::AlignVCenter | Qt::AlignLeft, path);
  }
  if (pointed_ && *pointed_ < cells_.size()) {
    const QString words = words_of(cells_[*pointed_]);
    const QRectF cell = cells_[*pointed_].rect;
    const double wide = std::min(width() - 8.0, painter.fontMetrics().horizontalAdvance(words) + 16.0);
    const double x = std::clamp(cell.left(), 4.0, std::max(4.0, width() - wide - 4));
    const double below = cell.bottom() + 4, y = below + 24 < height() ? below : std::max(2.0, cell.top() + 22);
    const QRectF box(x, y, wide, 22);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen((*theme_)[Token::control]);
    painter.setBrush((*theme_)[Token::raised]);
    painter.drawRoundedRect(box, 4, 4);
    painter.setPen(theme_->text);
    paint_elided(painter, box.adjusted(8, 0, -6, 0), Qt::AlignVCenter | Qt::AlignLeft, words);
    painter.setRenderHint(QPainter::Antialiasing, false);
  }
  if (!hasFocus()) return;
  painter.setPen(QPen(theme_->accent, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect().adjusted(1, 1, -1, -1));
}

void HeldView::resizeEvent(QResizeEvent* /*event*/) { arrange(); }

void HeldView::point_at(std::optional<std::size_t> cell) {
  if (cell == pointed_) return;
  pointed_ = cell;
  const QString words = cell ? words_of(cells_[*cell]) : QString();
  setAccessibleDescription(words);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
  if (on_hover) on_hover(words);
  update();
}

// In the order that the cells are drawn in: parents before what is in them.
void HeldView::step(int by) {
  if (cells_.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(cells_.size()) - 1;
  const std::ptrdiff_t at = pointed_ ? static_cast<std::ptrdiff_t>(*pointed_) + by : by > 0 ? 0 : last;
  point_at(static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last)));
}

void HeldView::open(std::size_t cell) {
  const studies::HeldNode* const node = cells_[cell].node;
  if (node == nullptr || node == whole()) return;
  if (!node->children.empty()) {
    opened_.push_back(node);
    arrange();
  } else if (node->example >= 0 && on_block) {
    on_block(node->example);
  }
}

bool HeldView::back() {
  if (opened_.empty()) return false;
  opened_.pop_back();
  arrange();
  return true;
}

void HeldView::mouseMoveEvent(QMouseEvent* event) { point_at(held_at(cells_, event->position())); }

void HeldView::mouseReleaseEvent(QMouseEvent* event) {
  setFocus();
  if (event->button() == Qt::RightButton || event->position().y() < path_height) {
    static_cast<void>(back());
    return;
  }
  if (event->button() != Qt::LeftButton) return;
  const auto cell = held_at(cells_, event->position());
  if (cell) open(*cell);
}

void HeldView::leaveEvent(QEvent* /*event*/) { point_at(std::nullopt); }

void HeldView::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return step(1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return step(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (pointed_) open(*pointed_);
      return;
    case Qt::Key_Home:
      opened_.clear();
      return arrange();
    case Qt::Key_Backspace:
    case Qt::Key_Escape:
      if (back()) return;
      break;
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

}  // namespace spillway::gui
