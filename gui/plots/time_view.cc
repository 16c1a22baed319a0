#include "gui/plots/time_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

namespace spillway::gui {
namespace {

constexpr int least_drag = 4;  // pixels
constexpr double view_key_zoom = 0.7, view_key_pan = 0.15;

}  // namespace

void SharedTime::changed() const {
  for (const auto& listener : listeners_) listener();
}

void SharedTime::set_whole(TimeRange whole) {
  if (whole == whole_) return;
  const bool all = view_ == whole_;
  const bool holds = view_.begin >= whole.begin && view_.end <= whole.end;
  whole_ = whole;
  if (all || !holds) view_ = whole;
  if (selection_ && (selection_->begin >= whole.end || selection_->end <= whole.begin)) selection_.reset();
  changed();
}

void SharedTime::set_view(TimeRange view) {
  view = inside(view, whole_);
  if (view == view_) return;
  view_ = view;
  changed();
}

void SharedTime::select(std::optional<TimeRange> selection) {
  if (selection == selection_) return;
  selection_ = selection;
  for (const auto& listener : mark_listeners_) listener();
  for (const auto& listener : select_listeners_) listener();
}

void SharedTime::point_at(std::optional<std::int64_t> cursor) {
  if (cursor == cursor_) return;
  cursor_ = cursor;
  for (const auto& listener : mark_listeners_) listener();
}

TimeView::TimeView(SharedTime& time, const QString& name, const QString& about) : time_(time), theme_(&light_theme()) {
  setAccessibleName(name);
  setAccessibleDescription(about);
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setMinimumSize(240, 80);
  setAttribute(Qt::WA_OpaquePaintEvent);
  time_.on_change([this] { refresh(); });
  time_.on_marks([this] { update(); });
}

void TimeView::set_theme(const Theme& theme) {
  theme_ = &theme;
  refresh();
}

void TimeView::set_stale(bool stale) {
  if (stale == stale_) return;
  stale_ = stale;
  update();
}

void TimeView::refresh() {
  is_drawn_ = false;
  if (isVisible()) update();
}

PlotFrame TimeView::frame() const { return {.size = size(), .ratio = devicePixelRatioF()}; }

void TimeView::paint_over(QPainter& painter) const {
  paint_marks(painter, frame(), time_.view(), *theme_,
              {.selection = time_.selection(), .rows = selected_rows(), .cursor = time_.cursor(), .stale = stale_});
}

QImage TimeView::picture() const {
  QImage image = paint(frame());
  QPainter painter(&image);
  paint_over(painter);
  return image;
}

std::int64_t TimeView::time_at(int x) const {
  const PlotFrame shape = frame();
  const TimeRange view = time_.view();
  const std::int64_t at = shape.axis_of(view).time(x - shape.plot().left());
  return std::clamp(at, view.begin, view.end);
}

void TimeView::paintEvent(QPaintEvent* /*event*/) {
  if (!is_drawn_) {
    image_ = paint(frame());
    is_drawn_ = true;
  }
  QPainter painter(this);
  painter.drawImage(0, 0, image_);
  paint_over(painter);
  if (!hasFocus()) return;
  painter.setPen(QPen(theme_->accent, 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void TimeView::resizeEvent(QResizeEvent* /*event*/) { refresh(); }

void TimeView::wheelEvent(QWheelEvent* event) {
  const QPoint turned = event->angleDelta();
  const bool shift = (event->modifiers() & Qt::ShiftModifier) != 0,
             ctrl = (event->modifiers() & Qt::ControlModifier) != 0;
  const int most = turned.y() != 0 ? turned.y() : turned.x();
  if (ctrl || event->position().x() < frame().gutter) {
    scroll_rows(-most / 60);
  } else if (shift || std::abs(turned.x()) > std::abs(turned.y())) {
    time_.set_view(panned(time_.view(), time_.whole(), -most / 1200.0));
  } else {
    const QRect plot = frame().plot();
    const double anchor = std::clamp((event->position().x() - plot.left()) / plot.width(), 0.0, 1.0);
    time_.set_view(zoomed(time_.view(), time_.whole(), std::pow(0.8, turned.y() / 120.0), anchor));
  }
  event->accept();
}

void TimeView::mousePressEvent(QMouseEvent* event) {
  setFocus();
  if (event->button() != Qt::LeftButton) return;
  pressed_ = event->pos();
  drags_ = false;
}

void TimeView::mouseMoveEvent(QMouseEvent* event) {
  if (pressed_ && std::abs(event->pos().x() - pressed_->x()) >= least_drag && pressed_->x() >= frame().gutter)
    drags_ = true;
  if (drags_) {
    const std::int64_t a = time_at(pressed_->x()), b = time_at(event->pos().x());
    if (a != b) time_.select(TimeRange{std::min(a, b), std::max(a, b)});
  }
  time_.point_at(event->pos().x() >= frame().gutter ? std::optional(time_at(event->pos().x())) : std::nullopt);
  if (on_hover) on_hover(words_at(event->pos()));
}

void TimeView::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !pressed_) return;
  if (!drags_) click(event->pos());
  pressed_.reset();
  drags_ = false;
}

void TimeView::mouseDoubleClickEvent(QMouseEvent* event) {
  click(event->pos());
  if (const auto range = chosen_range()) time_.select(range);
}

void TimeView::keyPressEvent(QKeyEvent* event) {
  const int key = event->key();
  const TimeRange view = time_.view(), whole = time_.whole();
  const bool is_plus = key == Qt::Key_Plus;  // on many keyboards with Shift
  const auto others = Qt::ControlModifier | Qt::AltModifier | (is_plus ? Qt::NoModifier : Qt::ShiftModifier);
  if ((event->modifiers() & others) != 0) return QWidget::keyPressEvent(event);
  if (key == Qt::Key_W || key == Qt::Key_Plus)
    time_.set_view(zoomed(view, whole, view_key_zoom, 0.5));
  else if (key == Qt::Key_S || key == Qt::Key_Minus)
    time_.set_view(zoomed(view, whole, 1 / view_key_zoom, 0.5));
  else if (key == Qt::Key_A || key == Qt::Key_Left)
    time_.set_view(panned(view, whole, -view_key_pan));
  else if (key == Qt::Key_D || key == Qt::Key_Right)
    time_.set_view(panned(view, whole, view_key_pan));
  else if (key == Qt::Key_Up || key == Qt::Key_Down)
    scroll_rows(key == Qt::Key_Up ? -1 : 1);
  else if (key == Qt::Key_Home)
    time_.set_view(whole);
  else if (key == Qt::Key_Escape)
    time_.select(std::nullopt);
  else if (key == Qt::Key_F && (time_.selection() || chosen_range()))
    time_.set_view(time_.selection() ? *time_.selection() : *chosen_range());
  else if (!other_key(key))
    QWidget::keyPressEvent(event);
}

void TimeView::leaveEvent(QEvent* /*event*/) {
  time_.point_at(std::nullopt);
  if (on_hover) on_hover({});
}

}  // namespace spillway::gui
