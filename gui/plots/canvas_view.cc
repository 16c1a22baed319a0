#include "gui/plots/canvas_view.h"

#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "base/short_text.h"
#include "gui/canvas/block_names.h"

namespace spillway::gui {
namespace {

constexpr std::size_t most_flows = 64;
constexpr int wide = 1000;        // logical pixels: from there on labels have more room
constexpr double shown_with = 6;  // times its own length around what is gone to

QString text_of(std::string_view view) { return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size())); }

// Of what the GPU does; of a capture without one, of what was recorded of the host.
const char* axis_name(MemoryClock axis, bool on_host) {
  return axis == MemoryClock::gpu    ? (on_host ? "Replayed time" : "GPU time")
         : axis == MemoryClock::host ? "Host time"
                                     : "Program order";
}

}  // namespace

QString op_words(const Outcome& outcome, const TrackScene& scene, std::uint32_t op) {
  const Trace& trace = outcome.trace();
  const Result& result = outcome.result();
  QString words = QString::fromStdString(span_name(scene, op));
  if (is_storage(trace.ops.kind[op])) words += ", " + text_of(trace.strings.text(trace.ops.name[op]));
  words += QString("  %1 at %2")
               .arg(QString::fromStdString(time_text((result.op_end[op] - result.op_start[op]).count())),
                    QString::fromStdString(time_text(result.op_start[op].count())));
  if (trace.ops.phase[op] != Phase::unknown) words += ", " + text_of(to_string(trace.ops.phase[op]));
  if (trace.ops.layer[op] != no_index16) words += QString(", layer %1").arg(trace.ops.layer[op]);
  if (trace.ops.micro_batch[op] != no_index16) words += QString(", micro-batch %1").arg(trace.ops.micro_batch[op]);
  if (trace.ops.bytes[op] > Bytes(0)) words += ", " + QString::fromStdString(short_size(trace.ops.bytes[op]));
  if (trace.ops.flops[op] > Flops(0))
    words += QString(", %1 Gflop").arg(static_cast<double>(trace.ops.flops[op].count()) / 1e9, 0, 'f', 2);
  const bool on_path = std::any_of(result.path.begin(), result.path.end(),
                                   [op](const PathStep& step) { return !step.waits && index_of(step.op) == op; });
  if (on_path) words += ", on the critical path";
  return words;
}

std::string block_name(const Outcome& outcome, const MemoryPicture::Block& block) {
  return block_name(outcome.trace(), block);
}

CanvasView::CanvasView(SharedTime& time)
    : TimeView(
          time, tr("Canvas"),
          tr("The step over time: memory by owner, phases, streams, transfers and addresses. W and S zoom, A and D "
             "move, drag selects, F focuses, 1 2 3 change the axis, C shows the critical path, M the memory of the "
             "next GPU, N writes a note.")),
      bar_(new QScrollBar(Qt::Vertical, this)) {
  bar_->setAccessibleName(tr("Tracks"));
  QObject::connect(bar_, &QScrollBar::valueChanged, this, [this] { refresh(); });
}

PlotFrame CanvasView::frame() const {
  PlotFrame frame = TimeView::frame();
  frame.axis = canvas_top;
  frame.gutter = width() >= wide ? 168 : 132;
  return frame;
}

void CanvasView::show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline) {
  if (outcome != outcome_) {
    chosen_.reset();
    block_.reset();
    flows_.clear();
    marked_.clear();
    map_view_.reset();
    rank_.reset();
  }
  outcome_ = std::move(outcome);
  baseline_ = std::move(baseline);
  MemoryClock axis = axis_;
  if (outcome_ != nullptr && !outcome_->has_axis(axis))
    axis = outcome_->has_axis(MemoryClock::gpu) ? MemoryClock::gpu : MemoryClock::program;
  become(axis);
}

void CanvasView::show_rank(std::shared_ptr<const RankView> view) {
  if (outcome_ == nullptr) return;
  block_.reset();
  map_view_.reset();
  rank_ = std::move(view);
  become(axis_);
}

std::shared_ptr<const MemoryScene> CanvasView::memory() const {
  return outcome_ == nullptr ? nullptr : outcome_->memory(axis_, rank_.get());
}

void CanvasView::become(MemoryClock axis) {
  const bool changed = axis != axis_;
  axis_ = axis;
  scene_ = outcome_ == nullptr ? TrackScene() : outcome_->tracks(axis, rank_.get());
  const bool has_ghost = baseline_ != nullptr && baseline_ != outcome_ && baseline_->has_axis(axis);
  ghost_ = has_ghost ? baseline_->tracks(axis) : TrackScene();
  if (rank_ != nullptr) ghost_.memory = nullptr;  // which is of another GPU
  if (outcome_ != nullptr) time().set_whole(outcome_->whole(axis));
  arrange();
  refresh();
  if (changed && on_axis) on_axis();
}

std::int64_t CanvasView::carried(std::int64_t place, MemoryClock from, MemoryClock to) const {
  const bool by_order_before = from == MemoryClock::program, by_order = to == MemoryClock::program;
  if (by_order_before == by_order) return place;  // ops are at the same times on both clocks
  const Result& result = outcome_->result();
  const auto& places = outcome_->issue_places;
  const auto begin_on = [&](std::size_t op, bool order) { return order ? places[op] : result.op_start[op].count(); };
  const auto end_on = [&](std::size_t op, bool order) { return order ? places[op] + 1 : result.op_end[op].count(); };
  std::optional<std::size_t> last;  // to begin before the place
  for (std::size_t op = 0; op < std::min(places.size(), result.op_start.size()); ++op) {
    if (result.op_start[op] == unknown_time || !is_device_work(outcome_->trace().ops.kind[op])) continue;
    const std::int64_t begin = begin_on(op, by_order_before);
    if (begin <= place && (!last || begin >= begin_on(*last, by_order_before))) last = op;
  }
  const TimeRange whole = outcome_->whole(to);
  if (!last) return whole.begin;
  if (place >= outcome_->whole(from).end) return whole.end;
  const std::int64_t begin = begin_on(*last, by_order_before), length = end_on(*last, by_order_before) - begin;
  const double part = length <= 0 ? 0 : std::min(1.0, static_cast<double>(place - begin) / static_cast<double>(length));
  const std::int64_t new_length = end_on(*last, by_order) - begin_on(*last, by_order);
  return begin_on(*last, by_order) + static_cast<std::int64_t>(part * static_cast<double>(new_length));
}

bool CanvasView::set_axis(MemoryClock axis) {
  if (outcome_ == nullptr || !outcome_->has_axis(axis)) return false;
  if (axis == axis_) return true;
  const MemoryClock before = axis_;
  const TimeRange view = time().view();
  const bool all = view == time().whole();
  const auto selection = time().selection();
  const auto moved = [&](TimeRange range) {
    const std::int64_t begin = carried(range.begin, before, axis);
    return TimeRange{begin, std::max(begin + 1, carried(range.end, before, axis))};
  };
  const TimeRange new_view = all ? outcome_->whole(axis) : moved(view);
  const auto new_selection = selection ? std::optional(moved(*selection)) : std::nullopt;
  block_.reset();
  time().select(std::nullopt);
  become(axis);
  time().set_view(new_view);
  time().select(new_selection);
  return true;
}

void CanvasView::show_notes(std::vector<Note> notes) {
  notes_ = std::move(notes);
  refresh();
}

void CanvasView::show_path(bool shown) {
  with_path_ = shown;
  refresh();
  if (on_axis) on_axis();
}

void CanvasView::arrange() {
  choice_.room = height() - canvas_top;
  tracks_ = outcome_ == nullptr ? std::vector<Track>() : track_list(scene_, choice_);
  fit_scroll();
}

bool CanvasView::is_timed() const {
  const bool has_lanes = outcome_ != nullptr && !outcome_->timeline.empty();
  return has_lanes ? axis_ != MemoryClock::program : scene_.memory != nullptr && scene_.memory->picture.timed;
}

std::size_t CanvasView::lanes_shown() const {
  return static_cast<std::size_t>(std::count_if(tracks_.begin(), tracks_.end(),
                                                [](const Track& track) { return track.kind != TrackKind::heading; }));
}

TrackLook CanvasView::look(const PlotFrame& frame) const {
  TrackLook look;
  look.frame = frame;
  look.view = time().view();
  look.whole = time().whole();
  const bool has_lanes = outcome_ != nullptr && !outcome_->timeline.empty();
  look.timed = is_timed();
  look.axis_name = has_lanes    ? axis_name(axis_, outcome_->result().memory.on_host)
                   : look.timed ? "Recorded time"
                                : "Allocator event";
  look.scroll = bar_->value();
  look.right = bar_->isVisible() ? bar_->width() : 0;
  look.tracks = &tracks_;
  if (axis_ == MemoryClock::program && has_lanes) look.begins = &outcome_->issue_places;
  look.chosen = chosen_;
  look.block = block_;
  look.flows = flows_;
  look.with_path = with_path_;
  look.marked = marked_;
  look.map = map_view_;
  if (outcome_ != nullptr)
    for (std::size_t i = 0; i < notes_.size(); ++i)
      if (notes_[i].axis == axis_ || (outcome_->has_axis(notes_[i].axis) && has_lanes))
        look.notes.push_back({carried(notes_[i].at, notes_[i].axis, axis_), notes_[i].text, i});
  if (ghost_.lanes != nullptr) look.ghost = &ghost_;
  return look;
}

void CanvasView::fit_scroll() {
  const int wanted = TrackPlaces(scene_, look(frame())).bottom(), room = height();
  bar_->setRange(0, std::max(0, wanted - room));
  bar_->setPageStep(std::max(1, room - canvas_top));
  bar_->setSingleStep(24);
  bar_->setVisible(wanted > room);
}

void CanvasView::resizeEvent(QResizeEvent* event) {
  const int bar = bar_->sizeHint().width();
  bar_->setGeometry(width() - bar, canvas_top, bar, height() - canvas_top);
  arrange();
  TimeView::resizeEvent(event);
}

void CanvasView::scroll_rows(int steps) { bar_->setValue(bar_->value() + steps * bar_->singleStep()); }

QImage CanvasView::paint(const PlotFrame& frame) const {
  const bool is_empty = outcome_ == nullptr || tracks_.empty();
  if (!is_empty) return paint_tracks(scene_, look(frame), theme());
  QImage image = blank(frame, theme());
  QPainter painter(&image);
  painter.setPen(theme().muted);
  painter.drawText(QRect(0, 0, frame.size.width(), frame.size.height()), Qt::AlignCenter | Qt::TextWordWrap,
                   outcome_ == nullptr ? QString() : tr("Nothing was replayed."));
  return image;
}

std::optional<std::uint32_t> CanvasView::span_at(QPoint at, TimeRange* range) const {
  const PlotFrame shape = frame();
  const TrackLook here = look(shape);
  const auto row = TrackPlaces(scene_, here).at(at.y());
  if (!row || at.x() < shape.gutter) return std::nullopt;
  const Track& track = tracks_[row->track];
  if (track.kind != TrackKind::spans && track.kind != TrackKind::pass) return std::nullopt;
  const auto& lanes = track.kind == TrackKind::pass ? scene_.passes->lanes : scene_.lanes->lanes;
  const SpanLane& spans = lanes[track.lanes[row->row]].spans;
  const TimeAxis axis = shape.axis_of(time().view());
  const std::int64_t found = spans.at(axis.time(at.x() - shape.gutter), static_cast<std::int64_t>(2 / axis.scale()));
  if (found < 0) return std::nullopt;
  const auto i = static_cast<std::size_t>(found);
  if (range != nullptr) *range = {spans.begin(i), std::max(spans.end(i), spans.begin(i) + 1)};
  return spans.id(i);
}

std::int64_t CanvasView::block_at(QPoint at) const {
  const PlotFrame shape = frame();
  const TrackLook here = look(shape);
  const TrackPlaces places(scene_, here);
  const auto row = places.at(at.y());
  if (!row || tracks_[row->track].kind != TrackKind::map || at.x() < shape.gutter) return -1;
  const Track& track = tracks_[row->track];
  const double part = 1 - static_cast<double>(at.y() - places.top(row->track)) / track.row_height;
  const TimeRange shown = map_shown(scene_, here);
  const auto address = shown.begin + static_cast<std::int64_t>(part * static_cast<double>(shown.length()));
  return scene_.memory->map.at(shape.axis_of(time().view()).time(at.x() - shape.gutter), address);
}

QString CanvasView::words_at(QPoint at) const {
  const PlotFrame shape = frame();
  const TrackLook here = look(shape);
  if (const auto note = TrackPlaces(scene_, here).note_at(at))
    return tr("note: %1").arg(QString::fromStdString(here.notes[*note].text));
  const auto row = TrackPlaces(scene_, here).at(at.y());
  if (!row || outcome_ == nullptr) return {};
  const Track& track = tracks_[row->track];
  const QString name = QString::fromStdString(track.label);
  const std::int64_t when = shape.axis_of(time().view()).time(at.x() - shape.gutter);
  if (track.kind == TrackKind::memory && at.x() >= shape.gutter) {
    const OwnerStack::Held held = scene_.memory->owners.at(when);
    QString words = tr("at %1: %2 allocated, %3 reserved")
                        .arg(QString::fromStdString(time_text(when, here.timed)),
                             QString::fromStdString(short_size(Bytes(OwnerStack::sum(held)))),
                             QString::fromStdString(short_size(Bytes(scene_.memory->reserved.value_at(when)))));
    for (std::size_t i = 0; i < most_owners; ++i)
      if (held[i] > 0)
        words += QString(", %1 %2").arg(QString::fromStdString(scene_.memory->owners.owners()[i].words),
                                        QString::fromStdString(short_size(Bytes(held[i]))));
    return words;
  }
  if (track.kind == TrackKind::counter && at.x() >= shape.gutter) {
    const CounterLane& counter = (*scene_.counters)[track.lanes.front()];
    return tr("%1: %2 at %3, %4 on average over what is shown")
        .arg(name, QString::fromStdString(counter.text(counter.value_at(when))),
             QString::fromStdString(time_text(when, here.timed)),
             QString::fromStdString(counter.text(counter.mean(time().view()))));
  }
  if (track.kind == TrackKind::map) {
    const std::int64_t found = block_at(at);
    if (found < 0) return name;
    const MemoryPicture::Block& block =
        scene_.memory->picture.blocks[scene_.memory->map.blocks()[static_cast<std::size_t>(found)].source];
    return tr("%1: %2, %3, alive from %4 to %5")
        .arg(QString::fromStdString(block_name(*outcome_, block)),
             QString::fromStdString(scene_.memory->picture.kinds[block.kind]).replace('_', ' '),
             QString::fromStdString(short_size(block.size)), QString::fromStdString(time_text(block.begin, here.timed)),
             QString::fromStdString(time_text(block.end, here.timed)));
  }
  TimeRange range;
  const auto id = span_at(at, &range);
  if (!id) return name;
  const QString length = QString::fromStdString(time_text(range.length(), here.timed));
  if (track.kind == TrackKind::pass)
    return QString("%1: %2, %3").arg(name, QString::fromStdString(scene_.passes->passes[*id].name), length);
  if (is_span(*id)) return QString("%1: %2  %3").arg(name, QString::fromStdString(span_name(scene_, *id)), length);
  return name + ": " + op_words(*outcome_, scene_, *id);
}

void CanvasView::click(QPoint at) {
  const PlotFrame shape = frame();
  const TrackLook here = look(shape);
  const auto row = TrackPlaces(scene_, here).at(at.y());
  if (row && tracks_[row->track].kind == TrackKind::heading) {
    toggle_group(tracks_[row->track].name);
    return;
  }
  chosen_.reset();
  block_.reset();
  const bool is_pass = row && tracks_[row->track].kind == TrackKind::pass;
  if (const auto id = span_at(at, &chosen_at_); id && !is_pass) chosen_ = id;
  if (const std::int64_t found = block_at(at); found >= 0) {
    block_ = static_cast<std::size_t>(found);
    chosen_at_ = {scene_.memory->map.blocks()[*block_].begin, scene_.memory->map.blocks()[*block_].end};
  }
  flows_ = flows();
  refresh();
  if (on_choose) on_choose();
}

// Host call to work, and of a tensor's transfers: its writer to the store, the store to the load, the load to its
// reader.
std::vector<TrackFlow> CanvasView::flows() const {
  std::vector<TrackFlow> found;
  if (!chosen_ || outcome_ == nullptr || is_span(*chosen_)) return found;
  const Trace& trace = outcome_->trace();
  const std::uint32_t op = *chosen_;
  const auto add = [&](std::size_t from, std::size_t to) {
    if (found.size() < most_flows) found.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
  };
  if (trace.ops.launched_by[op] != OpId::none) add(index_of(trace.ops.launched_by[op]), op);
  if (is_host_call(trace.ops.kind[op]))
    for (std::size_t i = 0; i < trace.ops.size() && found.size() < most_flows; ++i)
      if (index_of(trace.ops.launched_by[i]) == op) add(op, i);
  if (!is_storage(trace.ops.kind[op]) && !is_copy(trace.ops.kind[op])) return found;
  std::optional<TensorId> moved;
  for (const Use& use : trace.uses)
    if (index_of(use.op) == op) moved = use.tensor;
  if (!moved) return found;
  std::vector<std::uint32_t> users;  // in the replay's order
  for (const Use& use : trace.uses)
    if (use.tensor == *moved && index_of(use.op) < outcome_->result().op_start.size() &&
        outcome_->result().op_start[index_of(use.op)] != unknown_time)
      users.push_back(static_cast<std::uint32_t>(index_of(use.op)));
  std::stable_sort(users.begin(), users.end(), [&](std::uint32_t a, std::uint32_t b) {
    return outcome_->result().op_start[a] < outcome_->result().op_start[b];
  });
  const auto is_transfer = [&](std::uint32_t one) {
    return is_storage(trace.ops.kind[one]) || is_copy(trace.ops.kind[one]);
  };
  for (std::size_t i = 1; i < users.size(); ++i)
    if (users[i - 1] != users[i] && (is_transfer(users[i - 1]) || is_transfer(users[i]))) add(users[i - 1], users[i]);
  return found;
}

std::optional<OpId> CanvasView::chosen() const {
  if (!chosen_ || is_span(*chosen_)) return std::nullopt;
  return static_cast<OpId>(*chosen_);
}

std::optional<std::size_t> CanvasView::chosen_block() const {
  if (!block_ || scene_.memory == nullptr) return std::nullopt;
  return scene_.memory->map.blocks()[*block_].source;
}

void CanvasView::choose_block(std::size_t block) {
  if (scene_.memory == nullptr) return;
  const auto& blocks = scene_.memory->map.blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].source != block) continue;
    block_ = i;
    chosen_at_ = {blocks[i].begin, std::max(blocks[i].end, blocks[i].begin + 1)};
  }
  reveal(TrackKind::map);
  refresh();
}

void CanvasView::mark(std::vector<std::uint32_t> ops) {
  marked_ = std::move(ops);
  refresh();
}

// In view, with room around it.
void CanvasView::show_place(const TimeRange& range, std::optional<QPointF> middle) {
  chosen_at_ = range;
  const bool in_view = range.begin >= time().view().begin && range.end <= time().view().end;
  const auto margin = static_cast<std::int64_t>(static_cast<double>(range.length()) * shown_with);
  if (!in_view) time().set_view({range.begin - margin, range.end + margin});
  if (middle && (middle->y() < canvas_top || middle->y() > height()))
    bar_->setValue(bar_->value() + static_cast<int>(middle->y()) - (canvas_top + height()) / 2);
}

void CanvasView::go_to(OpId op) {
  if (outcome_ == nullptr) return;
  chosen_ = static_cast<std::uint32_t>(index_of(op));
  block_.reset();
  flows_ = flows();
  const TrackLook here = look(frame());
  const TrackPlaces places(scene_, here);
  if (const auto range = places.range(*chosen_)) show_place(*range, places.middle(*chosen_, range->begin));
  refresh();
  if (on_choose) on_choose();
}

bool CanvasView::go_to_longest(const std::vector<std::uint32_t>& ops) {
  if (outcome_ == nullptr) return false;
  const Result& result = outcome_->result();
  std::optional<std::uint32_t> longest;
  Picos most{-1};
  for (const std::uint32_t op : ops) {
    if (op >= result.op_start.size() || result.op_start[op] == unknown_time) continue;
    const Picos length = result.op_end[op] - result.op_start[op];
    if (length <= most) continue;
    most = length;
    longest = op;
  }
  if (!longest) return false;
  go_to(static_cast<OpId>(*longest));
  return true;
}

bool CanvasView::go_to_span(const std::string& name) {
  if (outcome_ == nullptr || scene_.lanes == nullptr) return false;
  std::optional<TimeRange> most;
  std::uint32_t found = 0;
  std::size_t at = 0;
  for (std::size_t l = 0; l < scene_.lanes->lanes.size(); ++l) {
    const SceneLane& lane = scene_.lanes->lanes[l];
    if (lane.lane != LaneId::none) continue;
    for (std::size_t i = 0; i < lane.spans.size(); ++i) {
      const TimeRange range{lane.spans.begin(i), std::max(lane.spans.end(i), lane.spans.begin(i) + 1)};
      if ((most && range.length() <= most->length()) || span_name(scene_, lane.spans.id(i)) != name) continue;
      most = range;
      found = lane.spans.id(i);
      at = l;
    }
  }
  if (!most) return false;
  chosen_ = found;
  block_.reset();
  flows_.clear();
  std::optional<QPointF> middle;
  const TrackLook here = look(frame());
  for (std::size_t t = 0; t < tracks_.size(); ++t) {
    const auto& lanes = tracks_[t].lanes;
    const auto row = std::find(lanes.begin(), lanes.end(), at);
    if (tracks_[t].kind == TrackKind::spans && row != lanes.end())
      middle = QPointF(0, TrackPlaces(scene_, here).top(t) +
                              (static_cast<double>(row - lanes.begin()) + 0.5) * tracks_[t].row_height);
  }
  show_place(*most, middle);
  refresh();
  if (on_choose) on_choose();
  return true;
}

bool CanvasView::go_to_recorded(Picos begin) {
  if (outcome_ == nullptr) return false;
  const Ops& ops = outcome_->trace().ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_device_work(ops.kind[i]) && ops.start[i] == begin) return go_to_longest({static_cast<std::uint32_t>(i)});
  return false;
}

std::optional<TimeRange> CanvasView::chosen_range() const {
  if (!chosen_ && !block_) return std::nullopt;
  return TimeRange{chosen_at_.begin, std::max(chosen_at_.end, chosen_at_.begin + 1)};
}

bool CanvasView::other_key(int key) {
  if (key == Qt::Key_1 || key == Qt::Key_2 || key == Qt::Key_3) {
    set_axis(key == Qt::Key_1 ? MemoryClock::gpu : key == Qt::Key_2 ? MemoryClock::host : MemoryClock::program);
    return true;
  }
  if (key == Qt::Key_C) {
    show_path(!with_path_);
    return true;
  }
  if (key == Qt::Key_N && on_note && outcome_ != nullptr) {
    const TimeRange view = time().view();
    const auto selected = time().selection();
    const std::int64_t middle = selected ? selected->begin : view.begin + view.length() / 2;
    on_note(NoteWish::add, 0, time().cursor().value_or(middle));
    return true;
  }
  if (key == Qt::Key_M && on_rank) {
    on_rank(next_rank);
    return true;
  }
  return false;
}

void CanvasView::hide_lane(const std::string& name) {
  choice_.hidden.insert(name);
  arrange();
  refresh();
  if (on_lanes) on_lanes();
}

void CanvasView::pin_lane(const std::string& name) {
  if (choice_.pinned.erase(name) == 0) choice_.pinned.insert(name);
  arrange();
  refresh();
}

void CanvasView::toggle_group(const std::string& heading) {
  if (choice_.toggled.erase(heading) == 0) choice_.toggled.insert(heading);
  arrange();
  refresh();
}

void CanvasView::show_all_lanes() {
  choice_.hidden.clear();
  arrange();
  refresh();
  if (on_lanes) on_lanes();
}

void CanvasView::reveal(TrackKind kind) {
  const TrackLook here = look(frame());
  const TrackPlaces places(scene_, here);
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (tracks_[i].kind != kind) continue;
    const int top = places.top(i), bottom = top + tracks_[i].height();
    if (top < canvas_top)
      bar_->setValue(bar_->value() + top - canvas_top);
    else if (bottom > height())
      bar_->setValue(bar_->value() + bottom - height());
    return;
  }
}

}  // namespace spillway::gui
