// Where tracks and what is on them lie: for painter and pointer alike (track_painter.h).
#include <algorithm>

#include "gui/canvas/track_painter.h"

namespace spillway::gui {
namespace {

constexpr double headroom = 1.12;  // above the highest of memory, for its words

bool is_op(const SceneLane& lane) { return lane.lane != LaneId::none; }

}  // namespace

std::string span_name(const TrackScene& scene, std::uint32_t id) {
  if (scene.trace == nullptr) return {};
  const Trace& trace = *scene.trace;
  if (is_span(id)) return std::string(trace.strings.text(trace.spans.name[span_of(id)]));
  if (is_storage(trace.ops.kind[id]) || is_copy(trace.ops.kind[id])) {
    // Uses are in the order of their ops.
    const auto use = std::lower_bound(trace.uses.begin(), trace.uses.end(), OpId(id),
                                      [](const Use& one, OpId op) { return one.op < op; });
    if (use != trace.uses.end() && use->op == OpId(id)) {
      const std::string_view name = trace.strings.text(trace.tensors.name[index_of(use->tensor)]);
      if (!name.empty()) return std::string(name);
    }
  }
  return std::string(trace.strings.text(trace.ops.name[id]));
}

std::int64_t memory_top(const TrackScene& scene, const TrackLook& look) {
  std::int64_t most = 1;
  const auto take = [&most](const MemoryScene* memory) {
    if (memory != nullptr)
      most = std::max({most, memory->owners.peak(), memory->reserved.peak(), memory->picture.capacity.count()});
  };
  take(scene.memory);
  if (look.ghost != nullptr) take(look.ghost->memory);
  return static_cast<std::int64_t>(static_cast<double>(most) * headroom);
}

int TrackPlaces::top(std::size_t track) const {
  int y = look_.frame.axis - look_.scroll;
  for (std::size_t i = 0; i < track; ++i) y += (*look_.tracks)[i].height();
  return y;
}

int TrackPlaces::bottom() const {
  int y = look_.frame.axis;
  for (const Track& track : *look_.tracks) y += track.height();
  return y;
}

std::optional<TrackPlaces::Row> TrackPlaces::at(double y) const {
  if (y < look_.frame.axis) return std::nullopt;
  int top = look_.frame.axis - look_.scroll;
  for (std::size_t i = 0; i < look_.tracks->size(); ++i) {
    const Track& track = (*look_.tracks)[i];
    if (y < top + track.height()) {
      const auto row = static_cast<std::size_t>(std::max(0.0, (y - top) / track.row_height));
      return Row{i, std::min(row, std::max<std::size_t>(1, track.lanes.size()) - 1)};
    }
    top += track.height();
  }
  return std::nullopt;
}

std::optional<TrackPlaces::Place> TrackPlaces::place(std::uint32_t op) const {
  if (scene_.trace == nullptr || scene_.lanes == nullptr || is_span(op)) return std::nullopt;
  const LaneId wanted = scene_.trace->ops.lane[op];
  std::int64_t begin = 0;
  if (look_.begins != nullptr)
    begin = (*look_.begins)[op];
  else if (scene_.result != nullptr && op < scene_.result->op_start.size() &&
           scene_.result->op_start[op] != unknown_time)
    begin = scene_.result->op_start[op].count();
  else
    return std::nullopt;
  for (std::size_t t = 0; t < look_.tracks->size(); ++t) {
    const Track& track = (*look_.tracks)[t];
    if (track.kind != TrackKind::spans || !is_op(scene_.lanes->lanes[track.lanes.front()]) ||
        scene_.lanes->lanes[track.lanes.front()].lane != wanted)
      continue;
    for (std::size_t row = 0; row < track.lanes.size(); ++row) {
      const SpanLane& spans = scene_.lanes->lanes[track.lanes[row]].spans;
      const auto [first, last] = spans.within({begin, begin + 1});
      for (std::size_t i = first; i < std::min(last + 1, spans.size()); ++i)
        if (spans.id(i) == op) return Place{t, row, {spans.begin(i), std::max(spans.end(i), spans.begin(i) + 1)}};
    }
  }
  return std::nullopt;
}

std::optional<TimeRange> TrackPlaces::range(std::uint32_t op) const {
  const auto found = place(op);
  return found ? std::optional(found->range) : std::nullopt;
}

std::optional<QPointF> TrackPlaces::middle(std::uint32_t op, std::int64_t time) const {
  const auto found = place(op);
  if (!found) return std::nullopt;
  const Track& track = (*look_.tracks)[found->track];
  const double y = top(found->track) + (static_cast<double>(found->row) + 0.5) * track.row_height;
  return QPointF(look_.frame.gutter + look_.frame.axis_of(look_.view).x(time), y);
}

TimeRange map_shown(const TrackScene& scene, const TrackLook& look) {
  return look.map ? inside(*look.map, map_bytes(*scene.memory)) : map_bytes(*scene.memory);
}

QRectF note_flag(const TrackLook& look, const ShownNote& note) {
  constexpr double longest = 150, of_a_letter = 7, margin = 10, height = 16;
  if (note.at < look.view.begin || note.at > look.view.end) return {};
  const double x = look.frame.gutter + look.frame.axis_of(look.view).x(note.at);
  const double width = std::min(longest, margin + of_a_letter * static_cast<double>(note.text.size()));
  return {x, look.frame.axis - height - 1, std::max(margin, std::min(width, look.frame.size.width() - look.right - x)),
          height};
}

std::optional<std::size_t> TrackPlaces::note_at(QPointF at) const {
  for (std::size_t i = look_.notes.size(); i-- > 0;)
    if (note_flag(look_, look_.notes[i]).contains(at)) return i;
  return std::nullopt;
}

}  // namespace spillway::gui
