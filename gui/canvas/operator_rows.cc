#include "gui/canvas/operator_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/stop.h"
#include "sim/pictures/timeline_lanes.h"
#include "studies/diagnosis/host_clock.h"

namespace spillway::gui {
namespace {

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
  const studies::HostClock clock(trace, result, thread);
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
