#include "gui/canvas/timeline_scene.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "base/stop.h"
#include "gui/canvas/operator_rows.h"
#include "scenario/drawn_run.h"
#include "sim/pictures/timeline_lanes.h"
#include "studies/diagnosis/passes.h"
#include "traces/span_tree.h"

namespace spillway::gui {
namespace {

// In the order in which they ran.
std::vector<std::vector<OpId>> replayed_by_lane(const Trace& trace, const Result& result) {
  std::vector<std::vector<OpId>> lanes(trace.lanes.size());
  const std::size_t count = std::min({trace.ops.size(), result.op_start.size(), result.op_end.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const Picos start = result.op_start[i], end = result.op_end[i];
    if (start == unknown_time || end == unknown_time || end < start) continue;
    lanes[index_of(trace.ops.lane[i])].push_back(static_cast<OpId>(i));
  }
  const auto place = [&](OpId op) {
    return std::tuple(result.op_start[index_of(op)], result.op_end[index_of(op)], op);
  };
  for (auto& lane : lanes) {
    const auto earlier = [&](OpId a, OpId b) { return place(a) < place(b); };
    if (!std::is_sorted(lane.begin(), lane.end(), earlier)) std::sort(lane.begin(), lane.end(), earlier);
  }
  return lanes;
}

// Concurrent works of one lane go to rows of their own, as few as there must be.
void add_rows(const std::vector<OpId>& ops, const Trace& trace, const Result& result, const SceneLane& named,
              std::vector<SceneLane>& into) {
  std::vector<SceneLane> rows;
  std::vector<std::int64_t> free_from;
  for (const OpId op : ops) {
    check_stop();
    const std::int64_t start = result.op_start[index_of(op)].count(), end = result.op_end[index_of(op)].count();
    std::size_t row = 0;
    while (row < rows.size() && free_from[row] > start) ++row;
    if (row == rows.size()) {
      rows.push_back(named);
      if (row > 0) rows.back().name += " (" + std::to_string(row + 1) + ")";
      free_from.push_back(0);
      if (row == 0) rows.back().spans.reserve(ops.size());
    }
    const WorkColor color = work_color(trace.ops.kind[index_of(op)], trace.ops.phase[index_of(op)]);
    rows[row].spans.add(start, end, static_cast<std::uint8_t>(color), static_cast<std::uint32_t>(index_of(op)));
    free_from[row] = end;
  }
  std::move(rows.begin(), rows.end(), std::back_inserter(into));
}

void set_range(TimelineScene& scene, const Result& result) {
  std::int64_t end = std::max<std::int64_t>(1, end_of_drawn(result).count());
  for (const SceneLane& lane : scene.lanes)
    if (lane.spans.size() > 0) end = std::max(end, lane.spans.end(lane.spans.size() - 1));
  scene.whole = {0, end};
  for (const StepResult& step : result.steps)
    if (step.end > step.begin) scene.steps.push_back({step.name, {step.begin.count(), step.end.count()}});
}

std::string lower(std::string_view text) {
  std::string into(text);
  for (char& c : into) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return into;
}

// repeated: says how often each op runs; null: once.
studies::WorkSum summed(const TimelineScene& scene, const Trace& trace, TimeRange range,
                        const std::vector<std::size_t>* lanes, const Result* repeated) {
  studies::WorkSum sum(trace, {range.begin, range.end});
  for (std::size_t i = 0; i < scene.lanes.size(); ++i) {
    const SceneLane& lane = scene.lanes[i];
    const bool wanted = lanes == nullptr || std::find(lanes->begin(), lanes->end(), i) != lanes->end();
    if (lane.lane == LaneId::none || !wanted) continue;
    sum.lane(lane.name);
    const auto [first, last] = lane.spans.within(range);
    for (std::size_t k = first; k < last; ++k) {
      const auto op = static_cast<OpId>(lane.spans.id(k));
      sum.add(op, lane.spans.begin(k), lane.spans.end(k), repeated == nullptr ? 1 : repeated->runs_of(op));
    }
  }
  return sum;
}

}  // namespace

TimelineScene timeline_scene(const Trace& trace, const Result& result) {
  TimelineScene scene;
  const auto lanes = replayed_by_lane(trace, result);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (!lanes[i].empty()) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Lane &x = trace.lanes[a], &y = trace.lanes[b];
    return std::tuple(x.rank, x.kind) < std::tuple(y.rank, y.kind);
  });
  std::vector<SpanId> parents;
  for (const std::size_t i : order) {
    SceneLane named;
    named.name = lane_name(trace, trace.lanes[i]);
    named.lane = static_cast<LaneId>(i);
    const bool is_host = trace.lanes[i].kind == LaneKind::host_thread;
    if (is_host && parents.empty()) parents = span_parents(trace);
    std::vector<SceneLane> operators;
    if (is_host) operators = operator_rows(trace, result, named.lane, parents);
    add_rows(lanes[i], trace, result, named, scene.lanes);
    std::move(operators.begin(), operators.end(), std::back_inserter(scene.lanes));
  }
  set_range(scene, result);
  return scene;
}

TimelineScene pipeline_scene(const Trace& trace, const Result& result) {
  TimelineScene scene;
  const bool numbered = studies::has_micro_batches(trace);
  const auto ranks = studies::passes_of(trace, result);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    SceneLane row;
    row.name = rank < result.ranks.size() ? result.ranks[rank].name : "rank " + std::to_string(rank);
    for (const studies::Pass& pass : ranks[rank]) {
      row.spans.add(pass.begin, pass.end, static_cast<std::uint8_t>(work_color(OpKind::kernel, pass.phase)),
                    static_cast<std::uint32_t>(scene.passes.size()));
      scene.passes.push_back({studies::pass_name(pass, numbered)});
    }
    scene.lanes.push_back(std::move(row));
  }
  set_range(scene, result);
  return scene;
}

studies::WorkSum work_in(const TimelineScene& scene, const Trace& trace, TimeRange range,
                         const std::vector<std::size_t>* lanes) {
  return summed(scene, trace, range, lanes, nullptr);
}

studies::WorkSum all_work(const TimelineScene& scene, const Trace& trace, const Result& result) {
  return summed(scene, trace, scene.whole, nullptr, &result);
}

std::vector<std::uint32_t> find_ops(const Trace& trace, const std::string& words) {
  std::vector<std::uint32_t> found;
  const std::string wanted = lower(words);
  if (wanted.empty()) return found;
  std::vector<signed char> matches(trace.strings.size(), -1);  // by name, as asked
  const auto names_it = [&](StringId name) {
    signed char& known = matches[index_of(name)];
    if (known < 0) known = lower(trace.strings.text(name)).find(wanted) != std::string::npos ? 1 : 0;
    return known > 0;
  };
  const std::vector<SpanId> parents = span_parents(trace);
  const auto is_inside = [&](SpanId span) {
    for (; span != SpanId::none; span = parents[index_of(span)])
      if (names_it(trace.spans.name[index_of(span)])) return true;
    return false;
  };
  std::vector<bool> moves_it(trace.ops.size(), false);
  for (const Use& use : trace.uses)
    if ((is_storage(trace.ops.kind[index_of(use.op)]) || is_copy(trace.ops.kind[index_of(use.op)])) &&
        names_it(trace.tensors.name[index_of(use.tensor)]))
      moves_it[index_of(use.op)] = true;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (moves_it[i] || names_it(trace.ops.name[i]) || is_inside(trace.ops.span[i]))
      found.push_back(static_cast<std::uint32_t>(i));
  return found;
}

std::vector<std::uint32_t> ops_named(const Trace& trace, const std::string& name) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.strings.text(trace.ops.name[i]) == name) found.push_back(static_cast<std::uint32_t>(i));
  return found;
}

}  // namespace spillway::gui
