// The canvas under the mouse and the keys: the small picture, areas, addresses, the menu of a track.
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/plots/canvas_view.h"

namespace spillway::gui {
namespace {

constexpr int handle_reach = 5;  // logical pixels, of the small picture's handles
constexpr double key_zoom = 0.7, key_pan = 0.15;

}  // namespace

// ---- the small picture ----

std::int64_t CanvasView::whole_time_at(int x) const {
  const PlotFrame shape = frame();
  const TimeRange whole = time().whole();
  const double part = static_cast<double>(x - shape.gutter) / std::max(1, shape.plot().width());
  return whole.begin + static_cast<std::int64_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(whole.length()));
}

void CanvasView::mousePressEvent(QMouseEvent* event) {
  const PlotFrame shape = frame();
  const bool is_left = event->button() == Qt::LeftButton;
  const bool with_alt = (event->modifiers() & Qt::AltModifier) != 0;
  if (is_left) area_from_ = with_alt ? std::optional(event->pos().y()) : std::nullopt;
  if (!is_left || event->pos().y() >= minimap_height || event->pos().x() < shape.gutter)
    return TimeView::mousePressEvent(event);
  setFocus();
  const TimeAxis whole(time().whole(), shape.plot().width());
  const double begin = shape.gutter + whole.x(time().view().begin), end = shape.gutter + whole.x(time().view().end);
  const int x = event->pos().x();
  if (std::abs(x - begin) <= handle_reach)
    grip_ = Grip::begin;
  else if (std::abs(x - end) <= handle_reach)
    grip_ = Grip::end;
  else
    grip_ = Grip::move;
  const TimeRange view = time().view();
  const std::int64_t at = whole_time_at(x);
  const bool inside_view = at >= view.begin && at < view.end;
  gripped_at_ = inside_view ? at - view.begin : view.length() / 2;
  if (grip_ == Grip::move && !inside_view) time().set_view({at - gripped_at_, at - gripped_at_ + view.length()});
}

void CanvasView::mouseMoveEvent(QMouseEvent* event) {
  if (grip_ == Grip::none) {
    const bool on_small = event->pos().y() < minimap_height && event->pos().x() >= frame().gutter;
    setCursor(on_small ? Qt::SizeHorCursor : Qt::ArrowCursor);
    const auto before = time().selection();
    const std::set<std::string> area = area_;
    if ((event->buttons() & Qt::LeftButton) != 0) {
      if (area_from_)
        spread_area(*area_from_, event->pos().y());
      else
        area_.clear();
    }
    TimeView::mouseMoveEvent(event);
    if (area != area_ && before == time().selection()) {
      update();
      if (on_choose) on_choose();
    }
    return;
  }
  const TimeRange view = time().view();
  const std::int64_t at = whole_time_at(event->pos().x());
  if (grip_ == Grip::move) time().set_view({at - gripped_at_, at - gripped_at_ + view.length()});
  if (grip_ == Grip::begin) time().set_view({std::min(at, view.end - shortest_view), view.end});
  if (grip_ == Grip::end) time().set_view({view.begin, std::max(at, view.begin + shortest_view)});
}

void CanvasView::mouseReleaseEvent(QMouseEvent* event) {
  if (grip_ == Grip::none) return TimeView::mouseReleaseEvent(event);
  grip_ = Grip::none;
}

void CanvasView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->pos().y() < minimap_height) return time().set_view(time().whole());
  TimeView::mouseDoubleClickEvent(event);
}

void CanvasView::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  const TrackLook here = look(frame());
  const auto row = TrackPlaces(scene_, here).at(event->pos().y());
  const TrackPlaces places(scene_, here);
  const auto note = places.note_at(event->pos());
  if (on_note && outcome_ != nullptr && note) {
    menu.addAction(tr("Change this note…"), this,
                   [this, which = here.notes[*note].which] { on_note(NoteWish::change, which, 0); });
    menu.addAction(tr("Remove this note"), this,
                   [this, which = here.notes[*note].which] { on_note(NoteWish::remove, which, 0); });
  }
  if (on_note && outcome_ != nullptr && !note && event->pos().x() >= here.frame.gutter) {
    const std::int64_t at = here.frame.axis_of(time().view()).time(event->pos().x() - here.frame.gutter);
    menu.addAction(tr("Write a note here…"), this, [this, at] { on_note(NoteWish::add, 0, at); });
  }
  if (row && tracks_[row->track].kind != TrackKind::heading) {
    const std::string name = tracks_[row->track].name;
    const QString shown = QString::fromStdString(tracks_[row->track].label);
    menu.addAction(tr("Hide %1").arg(shown), this, [this, name] { hide_lane(name); });
    if (tracks_[row->track].kind == TrackKind::spans)
      menu.addAction(choice_.pinned.count(name) > 0 ? tr("Unpin %1").arg(shown) : tr("Pin %1 to the top").arg(shown),
                     this, [this, name] { pin_lane(name); });
    const bool is_stage = tracks_[row->track].kind == TrackKind::pass && outcome_->result().ranks.size() > 1;
    if (is_stage && on_rank)
      menu.addAction(tr("Show the memory of %1").arg(shown), this,
                     [this, stage = static_cast<int>(tracks_[row->track].lanes.front())] { on_rank(stage); });
  }
  if (!choice_.hidden.empty()) menu.addAction(tr("Show all tracks"), this, [this] { show_all_lanes(); });
  menu.addActions(actions());
  if (!menu.isEmpty()) menu.exec(event->globalPos());
}

// ---- an area: a range of time of some tracks ----

void CanvasView::spread_area(int from, int to) {
  const TrackLook here = look(frame());
  const TrackPlaces places(scene_, here);
  area_.clear();
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    const int top = places.top(i), bottom = top + tracks_[i].height();
    if (tracks_[i].kind != TrackKind::heading && bottom > std::min(from, to) && top <= std::max(from, to))
      area_.insert(tracks_[i].name);
  }
}

std::vector<std::size_t> CanvasView::lanes_in_area() const {
  std::vector<std::size_t> lanes;
  for (const Track& track : tracks_)
    if (track.kind == TrackKind::spans && area_.count(track.name) > 0)
      lanes.insert(lanes.end(), track.lanes.begin(), track.lanes.end());
  return lanes;
}

bool CanvasView::area_has_memory() const {
  return !has_area() || std::any_of(tracks_.begin(), tracks_.end(), [this](const Track& track) {
    return (track.kind == TrackKind::memory || track.kind == TrackKind::map) && area_.count(track.name) > 0;
  });
}

std::optional<RowRange> CanvasView::selected_rows() const {
  if (!has_area()) return std::nullopt;
  const TrackLook here = look(frame());
  const TrackPlaces places(scene_, here);
  std::optional<RowRange> rows;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (area_.count(tracks_[i].name) == 0) continue;
    const int top = places.top(i), bottom = top + tracks_[i].height() - tracks_[i].gap;
    rows = rows ? RowRange{std::min(rows->top, top), std::max(rows->bottom, bottom)} : RowRange{top, bottom};
  }
  return rows;
}

// ---- addresses ----

void CanvasView::zoom_map(double factor, double anchor) {
  if (scene_.memory == nullptr) return;
  const TimeRange all = map_bytes(*scene_.memory);
  const TimeRange shown = zoomed(map_view_.value_or(all), all, factor, anchor);
  map_view_ = shown == all ? std::nullopt : std::optional(shown);
  refresh();
}

void CanvasView::pan_map(double fraction) {
  if (scene_.memory == nullptr || !map_view_) return;
  map_view_ = panned(*map_view_, map_bytes(*scene_.memory), fraction);
  refresh();
}

void CanvasView::wheelEvent(QWheelEvent* event) {
  const TrackLook here = look(frame());
  const TrackPlaces places(scene_, here);
  const auto row = places.at(event->position().y());
  const bool on_map = row && tracks_[row->track].kind == TrackKind::map && event->position().x() >= frame().gutter;
  if (!on_map || (event->modifiers() & Qt::ControlModifier) == 0) return TimeView::wheelEvent(event);
  const double turned = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
  const double part = 1 - (event->position().y() - places.top(row->track)) / tracks_[row->track].row_height;
  if ((event->modifiers() & Qt::ShiftModifier) != 0)
    pan_map(turned / 1200.0);
  else
    zoom_map(std::pow(0.8, turned / 120.0), std::clamp(part, 0.0, 1.0));
  event->accept();
}

void CanvasView::keyPressEvent(QKeyEvent* event) {
  const bool shifted = event->modifiers() == Qt::ShiftModifier;
  if (shifted && event->key() == Qt::Key_W) return zoom_map(key_zoom, 0.5);
  if (shifted && event->key() == Qt::Key_S) return zoom_map(1 / key_zoom, 0.5);
  if (shifted && event->key() == Qt::Key_A) return pan_map(-key_pan);
  if (shifted && event->key() == Qt::Key_D) return pan_map(key_pan);
  if (shifted && event->key() == Qt::Key_M && on_rank) return on_rank(rank_before);
  if (event->key() == Qt::Key_Home) map_view_.reset();
  TimeView::keyPressEvent(event);
  if (event->key() == Qt::Key_Home) refresh();
}

}  // namespace spillway::gui
