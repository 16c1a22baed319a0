#include "gui/plots/timeline_view.h"

#include <QContextMenuEvent>
#include <QMenu>
#include <QScrollBar>
#include <algorithm>

#include "base/number_text.h"

namespace spillway::gui {
namespace {

const TimelineScene no_scene;
constexpr std::size_t most_flows = 64;
constexpr int least_lane_height = 15;  // lanes shrink before they scroll

QString op_words(const Outcome& outcome, std::uint32_t op) {
  const Trace& trace = outcome.trace();
  const Result& result = outcome.result();
  const auto text = [](std::string_view view) {
    return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size()));
  };
  QString words = text(trace.strings.text(trace.ops.name[op]));
  words += QString("  %1 at %2")
               .arg(QString::fromStdString(time_text((result.op_end[op] - result.op_start[op]).count())),
                    QString::fromStdString(time_text(result.op_start[op].count())));
  if (trace.ops.phase[op] != Phase::unknown) words += ", " + text(to_string(trace.ops.phase[op]));
  if (trace.ops.layer[op] != no_index16) words += QString(", layer %1").arg(trace.ops.layer[op]);
  if (trace.ops.micro_batch[op] != no_index16) words += QString(", micro-batch %1").arg(trace.ops.micro_batch[op]);
  if (trace.ops.bytes[op] > Bytes(0)) words += ", " + QString::fromStdString(bytes_text(trace.ops.bytes[op]));
  if (trace.ops.flops[op] > Flops(0))
    words += QString(", %1 Gflop").arg(static_cast<double>(trace.ops.flops[op].count()) / 1e9, 0, 'f', 2);
  return words;
}

}  // namespace

TimelineView::TimelineView(SharedTime& time, Kind kind)
    : TimeView(time, kind == Kind::ops ? tr("Timeline") : tr("Pipeline"),
               kind == Kind::ops ? tr("What runs when, by lane. W and S zoom, A and D move, drag selects, F focuses.")
                                 : tr("Passes of the pipeline's stages over time")),
      kind_(kind),
      bar_(new QScrollBar(Qt::Vertical, this)) {
  bar_->setAccessibleName(tr("Lanes"));
  QObject::connect(bar_, &QScrollBar::valueChanged, this, [this] { refresh(); });
}

const TimelineScene& TimelineView::scene() const {
  if (outcome_ == nullptr) return no_scene;
  return kind_ == Kind::ops ? outcome_->timeline : outcome_->pipeline;
}

void TimelineView::show(std::shared_ptr<const Outcome> outcome, std::shared_ptr<const Outcome> baseline) {
  const bool is_same = outcome == outcome_;
  outcome_ = std::move(outcome);
  baseline_ = std::move(baseline);
  if (!is_same) {
    chosen_.reset();
    flows_.clear();
  }
  arrange();
  refresh();
}

void TimelineView::arrange() {
  order_.clear();
  const auto& lanes = scene().lanes;
  for (const bool pinned : {true, false})
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (hidden_.count(lanes[i].name) == 0 && (pinned_.count(lanes[i].name) > 0) == pinned) order_.push_back(i);
  fit_scroll();
}

TimelineLook TimelineView::look(const PlotFrame& frame) const {
  TimelineLook look;
  look.frame = frame;
  look.view = time().view();
  look.lanes = order_;
  look.scroll = bar_->value();
  look.chosen = chosen_;
  look.flows = flows_;
  if (kind_ == Kind::pipeline) {
    look.lane_height = 30;
    look.least_label = 12;  // a batch's number
    return look;
  }
  const int rows = std::max(1, static_cast<int>(order_.size()));
  const int spare = row_height(look, baseline_ != nullptr) - frame.plot().height() / rows;
  if (spare > 0) look.gap = 3;
  look.lane_height = std::max(least_lane_height, look.lane_height - std::max(0, spare));
  return look;
}

void TimelineView::fit_scroll() {
  const PlotFrame shape = frame();
  const int row = row_height(look(shape), baseline_ != nullptr);
  const int room = shape.plot().height(), wanted = row * static_cast<int>(order_.size());
  bar_->setRange(0, std::max(0, wanted - room));
  bar_->setPageStep(std::max(1, room));
  bar_->setSingleStep(row);
  bar_->setVisible(wanted > room);
}

void TimelineView::resizeEvent(QResizeEvent* event) {
  const int width = bar_->sizeHint().width();
  bar_->setGeometry(this->width() - width, frame().axis, width, height() - frame().axis);
  fit_scroll();
  TimeView::resizeEvent(event);
}

void TimelineView::scroll_rows(int steps) { bar_->setValue(bar_->value() + steps * bar_->singleStep()); }

QImage TimelineView::paint(const PlotFrame& frame) const {
  TimelineExtras extras;
  if (baseline_ != nullptr) extras.baseline = kind_ == Kind::ops ? &baseline_->timeline : &baseline_->pipeline;
  if (outcome_ != nullptr) extras.trace = &outcome_->trace();
  if (kind_ == Kind::pipeline) extras.name = pass_name;
  QImage image = paint_timeline(scene(), extras, look(frame), theme());
  if (!scene().empty() || outcome_ == nullptr) return image;
  QPainter painter(&image);
  painter.setPen(theme().muted);
  painter.drawText(frame.plot(), Qt::AlignCenter | Qt::TextWordWrap,
                   kind_ == Kind::pipeline ? tr("One stage, so there is no pipeline to show.\nRaise \"stages\" under "
                                                "Pipeline (Chronos) at the left.")
                                           : tr("Nothing was replayed."));
  return image;
}

std::optional<TimelineView::Hit> TimelineView::hit(QPoint at) const {
  const PlotFrame shape = frame();
  const int y = at.y() - shape.axis + bar_->value();
  if (at.y() < shape.axis || y < 0) return std::nullopt;
  const auto row = static_cast<std::size_t>(y / row_height(look(shape), baseline_ != nullptr));
  if (row >= order_.size()) return std::nullopt;
  Hit found{order_[row], -1};
  if (at.x() < shape.gutter) return found;
  const TimeAxis axis = shape.axis_of(time().view());
  const auto reach = static_cast<std::int64_t>(2 / axis.scale());
  found.span = scene().lanes[found.lane].spans.at(axis.time(at.x() - shape.gutter), reach);
  return found;
}

QString TimelineView::words_at(QPoint at) const {
  const auto found = hit(at);
  if (!found || outcome_ == nullptr) return {};
  const SceneLane& lane = scene().lanes[found->lane];
  QString name = QString::fromStdString(lane.name);
  if (found->span < 0) return name;
  const std::uint32_t id = lane.spans.id(static_cast<std::size_t>(found->span));
  const auto span = static_cast<std::size_t>(found->span);
  if (kind_ == Kind::ops && is_span(id)) {
    const std::int64_t begin = lane.spans.begin(span);
    return QString("%1: %2  %3 at %4")
        .arg(name, QString::fromStdString(op_name(scene(), outcome_->trace(), id)),
             QString::fromStdString(time_text(lane.spans.end(span) - begin)), QString::fromStdString(time_text(begin)));
  }
  if (kind_ == Kind::ops) return name + ": " + op_words(*outcome_, id);
  return QString("%1: micro-batch %2, %3")
      .arg(name, QString::fromStdString(scene().passes[id].name),
           QString::fromStdString(time_text(lane.spans.end(span) - lane.spans.begin(span))));
}

void TimelineView::click(QPoint at) {
  const auto found = hit(at);
  chosen_.reset();
  if (found && found->span >= 0) {
    const SpanLane& spans = scene().lanes[found->lane].spans;
    const auto span = static_cast<std::size_t>(found->span);
    chosen_ = spans.id(span);
    chosen_at_ = {spans.begin(span), std::max(spans.end(span), spans.begin(span) + 1)};
  }
  flows_ = flows();
  refresh();
  if (on_choose) on_choose();
}

std::optional<TimelineFlow::End> TimelineView::place_of(std::uint32_t id) const {
  const auto& lanes = scene().lanes;
  const std::int64_t start = outcome_->result().op_start[id].count();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].lane != outcome_->trace().ops.lane[id]) continue;
    const auto [first, last] = lanes[lane].spans.within({start, start + 1});
    for (std::size_t i = first; i < std::min(last + 1, lanes[lane].spans.size()); ++i)
      if (lanes[lane].spans.id(i) == id) return TimelineFlow::End{lane, start};
  }
  return std::nullopt;
}

std::vector<TimelineFlow> TimelineView::flows() const {
  std::vector<TimelineFlow> found;
  if (!chosen_ || kind_ != Kind::ops || outcome_ == nullptr) return found;
  const Trace& trace = outcome_->trace();
  const auto add = [&](std::uint32_t from, std::uint32_t to) {
    const auto a = place_of(from), b = place_of(to);
    if (a && b && found.size() < most_flows) found.push_back({*a, *b});
  };
  if (is_span(*chosen_)) {  // all that was launched inside
    const std::size_t span = span_of(*chosen_);
    const Picos begin = trace.spans.start[span], end = begin + trace.spans.duration[span];
    for (std::size_t i = 0; i < trace.ops.size() && found.size() < most_flows; ++i) {
      const OpId by = trace.ops.launched_by[i];
      if (by == OpId::none || trace.ops.lane[index_of(by)] != trace.spans.lane[span]) continue;
      const Picos launched = trace.ops.start[index_of(by)];
      if (launched >= begin && launched < end)
        add(static_cast<std::uint32_t>(index_of(by)), static_cast<std::uint32_t>(i));
    }
    return found;
  }
  const OpId launcher = trace.ops.launched_by[*chosen_];
  if (launcher != OpId::none) add(static_cast<std::uint32_t>(index_of(launcher)), *chosen_);
  if (is_host_call(trace.ops.kind[*chosen_]))
    for (std::size_t i = 0; i < trace.ops.size() && found.size() < most_flows; ++i)
      if (index_of(trace.ops.launched_by[i]) == *chosen_) add(*chosen_, static_cast<std::uint32_t>(i));
  return found;
}

std::optional<OpId> TimelineView::chosen() const {
  if (!chosen_ || kind_ != Kind::ops || is_span(*chosen_)) return std::nullopt;
  return static_cast<OpId>(*chosen_);
}

std::optional<TimeRange> TimelineView::chosen_range() const {
  if (!chosen_ || kind_ != Kind::ops || outcome_ == nullptr) return std::nullopt;
  if (is_span(*chosen_)) return chosen_at_;
  const Result& result = outcome_->result();
  const std::int64_t begin = result.op_start[*chosen_].count(), end = result.op_end[*chosen_].count();
  return TimeRange{begin, std::max(end, begin + 1)};
}

void TimelineView::go_to(OpId op) {
  chosen_ = static_cast<std::uint32_t>(index_of(op));
  const auto range = chosen_range();
  if (!range) return;
  const std::int64_t length = std::max<std::int64_t>(range->length() * 20, shortest_view);
  const std::int64_t middle = range->begin + range->length() / 2;
  if (range->begin < time().view().begin || range->end > time().view().end ||
      time().view().length() > 400 * range->length())
    time().set_view({middle - length / 2, middle + length / 2});
  if (const auto place = place_of(*chosen_)) {
    const auto row = std::find(order_.begin(), order_.end(), place->lane) - order_.begin();
    bar_->setValue(static_cast<int>(row) * bar_->singleStep() - height() / 3);
  }
  flows_ = flows();
  refresh();
  if (on_choose) on_choose();
}

void TimelineView::hide_lane(const std::string& name) {
  hidden_.insert(name);
  arrange();
  refresh();
  if (on_lanes) on_lanes();
}

void TimelineView::pin_lane(const std::string& name) {
  if (pinned_.erase(name) == 0) pinned_.insert(name);
  arrange();
  refresh();
}

void TimelineView::show_all_lanes() {
  hidden_.clear();
  arrange();
  refresh();
  if (on_lanes) on_lanes();
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  if (const auto found = hit(event->pos())) {
    const std::string name = scene().lanes[found->lane].name;
    const QString shown = QString::fromStdString(name);
    menu.addAction(tr("Hide %1").arg(shown), this, [this, name] { hide_lane(name); });
    menu.addAction(pinned_.count(name) > 0 ? tr("Unpin %1").arg(shown) : tr("Pin %1 to the top").arg(shown), this,
                   [this, name] { pin_lane(name); });
  }
  if (!hidden_.empty()) menu.addAction(tr("Show all lanes"), this, [this] { show_all_lanes(); });
  menu.addActions(actions());
  if (!menu.isEmpty()) menu.exec(event->globalPos());
}

}  // namespace spillway::gui
