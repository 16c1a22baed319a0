#include "gui/canvas/operator_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/stop.h"
#include "sim/replay/timeline_lanes.h"

namespace spillway::gui {
namespace {

// From recorded to replayed time on one thread.
class HostClock {
 public:
  HostClock(const Trace& trace, const Result& result, LaneId thread) {
    const Ops& ops = trace.ops;
    for (std::size_t i = 0; i < std::min(ops.size(), result.op_start.size()); ++i) {
      if (ops.lane[i] != thread || ops.start[i] == unknown_time || ops.duration[i] == unknown_time) continue;
      if (result.op_start[i] == unknown_time || result.op_end[i] == unknown_time) continue;
      anchors_.push_back({ops.start[i].count(), result.op_start[i].count()});
      anchors_.push_back({(ops.start[i] + ops.duration[i]).count(), result.op_end[i].count()});
    }
    std::stable_sort(anchors_.begin(), anchors_.end(),
                     [](const Anchor& a, const Anchor& b) { return a.recorded < b.recorded; });
    std::int64_t reached = 0;
    for (Anchor& anchor : anchors_) anchor.replayed = reached = std::max(reached, anchor.replayed);
  }

  [[nodiscard]] bool empty() const { return anchors_.empty(); }

  [[nodiscard]] std::int64_t replayed(std::int64_t recorded) const {
    const auto after =
        std::upper_bound(anchors_.begin(), anchors_.end(), recorded,
                         [](std::int64_t wanted, const Anchor& anchor) { return wanted < anchor.recorded; });
    if (after == anchors_.begin()) return std::max<std::int64_t>(0, after->replayed - (after->recorded - recorded));
    const Anchor& before = *(after - 1);
    if (after == anchors_.end()) return before.replayed + (recorded - before.recorded);
    const double part =
        static_cast<double>(recorded - before.recorded) / static_cast<double>(after->recorded - before.recorded);
    return before.replayed + static_cast<std::int64_t>(part * static_cast<double>(after->replayed - before.replayed));
  }

 private:
  struct Anchor {
    std::int64_t recorded, replayed;
  };
  std::vector<Anchor> anchors_;
};

struct Placed {
  std::int64_t begin, end;
  std::uint32_t span;
};

// Of the ops launched inside each span; several: WorkColor::other.
std::vector<WorkColor> colors_of(const Trace& trace, const std::vector<SpanId>& parents) {
  std::vector<std::optional<WorkColor>> found(trace.spans.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.phase[i] == Phase::unknown) continue;
    const WorkColor color = work_color(OpKind::kernel, trace.ops.phase[i]);
    for (SpanId span = trace.ops.span[i]; span != SpanId::none; span = parents[index_of(span)]) {
      std::optional<WorkColor>& into = found[index_of(span)];
      if (into && (*into == color || *into == WorkColor::other)) break;
      into = into ? WorkColor::other : color;
    }
  }
  std::vector<WorkColor> colors;
  colors.reserve(found.size());
  for (const auto& color : found) colors.push_back(color.value_or(WorkColor::other));
  return colors;
}

}  // namespace

std::vector<SceneLane> operator_rows(const Trace& trace, const Result& result, LaneId thread,
                                     const std::vector<SpanId>& parents) {
  const Spans& spans = trace.spans;
  if (spans.size() == 0) return {};
  std::vector<Placed> placed;
  const HostClock clock(trace, result, thread);
  if (clock.empty()) return {};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    check_stop();
    if (spans.lane[i] != thread || spans.start[i] == unknown_time || spans.duration[i] == unknown_time) continue;
    placed.push_back({clock.replayed(spans.start[i].count()),
                      clock.replayed((spans.start[i] + spans.duration[i]).count()), static_cast<std::uint32_t>(i)});
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tuple(a.begin, -a.end, a.span) < std::tuple(b.begin, -b.end, b.span);
  });
  const std::vector<WorkColor> colors = colors_of(trace, parents);
  std::vector<SceneLane> rows;
  std::vector<std::int64_t> free_from;
  for (const Placed& one : placed) {
    std::size_t row = 0;
    while (row < rows.size() && free_from[row] > one.begin) ++row;
    if (row == most_operator_rows) continue;
    if (row == rows.size()) {
      rows.emplace_back();
      free_from.push_back(0);
    }
    rows[row].spans.add(one.begin, one.end, static_cast<std::uint8_t>(colors[one.span]), span_id(one.span));
    free_from[row] = one.end;
  }
  // Short, so that it is not cut: the thread's own row is above.
  const Lane& lane = trace.lanes[index_of(thread)];
  const std::string name =
      (trace.rank_count > 1 ? "rank " + std::to_string(lane.rank) + " " : "") + std::to_string(lane.number);
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row].name = name + " operators" + (row > 0 ? " " + std::to_string(row + 1) : "");
  return rows;
}

}  // namespace spillway::gui
