#include "gui/plots/plot_view.h"

#include <QAccessible>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <numeric>
#include <utility>

namespace spillway::gui {

PlotView::PlotView(const QString& name, const QString& about, const QString& hint)
    : theme_(&light_theme()), hint_(hint), about_(about) {
  setAccessibleName(name);
  setAccessibleDescription(about);
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setMinimumSize(240, 120);
}

void PlotView::set_theme(const Theme& theme) {
  theme_ = &theme;
  redraw();
}

void PlotView::set_stale(bool stale) {
  if (std::exchange(stale_, stale) != stale) update();
}

void PlotView::show_scene(PlotScene scene) {
  const bool same_kind = scene.x_title == scene_.x_title && scene.y_title == scene_.y_title;
  scene_ = std::move(scene);
  if (!same_kind) window_.reset();
  if (pointed_ && *pointed_ >= scene_.items()) point_at(std::nullopt);
  redraw();
}

void PlotView::redraw() {
  is_drawn_ = false;
  update();
}

QPoint PlotView::place(std::size_t item) const { return geometry().place(item).toPoint(); }

void PlotView::paintEvent(QPaintEvent* /*event*/) {
  const PlotGeometry where = geometry();
  if (!is_drawn_) {
    image_ = QImage(size() * devicePixelRatioF(), QImage::Format_RGB32);
    image_.setDevicePixelRatio(devicePixelRatioF());
    image_.fill(theme_->background);
    QPainter painter(&image_);
    painter.setFont(font());
    paint_plot(painter, scene_, where, *theme_);
    is_drawn_ = true;
  }
  QPainter painter(this);
  painter.drawImage(0, 0, image_);
  if (scene_.empty() || !scene_.empty_words.isEmpty()) {
    painter.setPen(theme_->muted);
    painter.drawText(rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap, scene_.empty_words);
  }
  if (stale_) {
    QColor veil = theme_->background;
    veil.setAlpha(130);
    painter.fillRect(rect(), veil);
  }
  if (pointed_) {
    const bool can_choose = (scene_.bars.empty() ? scene_.points[*pointed_].id : scene_.bars[*pointed_].id) >= 0;
    paint_card(painter, scene_, where, *pointed_, QRectF(rect()), *theme_, can_choose ? hint_ : QString());
  }
  if (hasFocus()) {
    painter.setPen(QPen(theme_->accent, 2));
    painter.setBrush(Qt::NoBrush);
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.drawRect(rect().adjusted(1, 1, -1, -1));
  }
}

void PlotView::resizeEvent(QResizeEvent* /*event*/) { is_drawn_ = false; }

// Its figures are said to who hears the window, too.
void PlotView::point_at(std::optional<std::size_t> item) {
  if (item == pointed_) return;
  pointed_ = item;
  QString words = about_;
  if (item) {
    const bool is_bar = !scene_.bars.empty();
    words = is_bar ? scene_.bars[*item].name : scene_.points[*item].name;
    for (const QString& fact : is_bar ? scene_.bars[*item].facts : scene_.points[*item].facts) words += ", " + fact;
  }
  setAccessibleDescription(words);
  QAccessibleEvent event(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
  update();
}

// To the next one: of bars by their order, of points from left to right.
void PlotView::step(int by) {
  std::vector<std::size_t> order(scene_.items());
  if (order.empty()) return;
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (scene_.bars.empty())
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return scene_.points[a].x < scene_.points[b].x; });
  if (!pointed_) return point_at(by > 0 ? order.front() : order.back());
  const auto at = std::find(order.begin(), order.end(), *pointed_) - order.begin() + by;
  point_at(order[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, std::ssize(order) - 1))]);
}

void PlotView::choose(std::size_t item) {
  const qint64 id = scene_.bars.empty() ? scene_.points[item].id : scene_.bars[item].id;
  if (id >= 0) Q_EMIT chosen(id);
}

void PlotView::zoom(double factor, QPointF at) {
  if (!scene_.bars.empty() || scene_.empty()) return;
  const PlotGeometry where = geometry();
  const double x = std::clamp((at.x() - where.plot().left()) / where.plot().width(), 0.0, 1.0);
  const double y = std::clamp((at.y() - where.plot().top()) / where.plot().height(), 0.0, 1.0);
  window_ = where.window_of({x - x * factor, y - y * factor, factor, factor});
  redraw();
}

void PlotView::wheelEvent(QWheelEvent* event) {
  const double notches = event->angleDelta().y() / 120.0;
  if (notches != 0) zoom(std::pow(0.8, notches), event->position());
  event->accept();
}

void PlotView::mouseMoveEvent(QMouseEvent* event) {
  if (!pressed_) return point_at(geometry().item_at(event->position()));
  const QPointF moved = event->position() - *pressed_;
  drags_ |= moved.manhattanLength() > 4;
  if (!drags_ || !scene_.bars.empty()) return;
  const PlotGeometry where = geometry();
  if (!window_) return;  // all of it is in sight
  window_ = where.window_of({-moved.x() / where.plot().width(), -moved.y() / where.plot().height(), 1, 1});
  pressed_ = event->position();
  redraw();
}

void PlotView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  pressed_ = event->position();
  drags_ = false;
}

void PlotView::mouseReleaseEvent(QMouseEvent* event) {
  const bool is_click = pressed_ && !drags_;
  pressed_.reset();
  if (event->button() != Qt::LeftButton || !is_click) return;
  point_at(geometry().item_at(event->position()));
  if (pointed_) choose(*pointed_);
}

void PlotView::leaveEvent(QEvent* /*event*/) { point_at(std::nullopt); }

void PlotView::keyPressEvent(QKeyEvent* event) {
  const QPointF middle = geometry().plot().center();
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return step(1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return step(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (pointed_) choose(*pointed_);
      return;
    case Qt::Key_W:
      return zoom(0.8, middle);
    case Qt::Key_S:
      return zoom(1.25, middle);
    case Qt::Key_Home:
      window_.reset();
      return redraw();
    case Qt::Key_Escape:
      if (pointed_) return point_at(std::nullopt);
      break;
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

}  // namespace spillway::gui
