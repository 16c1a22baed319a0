#include "studies/answer/step_lanes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "scenario/drawn_run.h"

namespace spillway::studies {
namespace {

constexpr std::size_t most_lanes = 8;  // of a rank
constexpr int all_columns = 4'800, fewest_columns = 150, most_columns = 1'200;
constexpr double hundredths = 100;

std::string kind_words(LaneKind kind) {
  switch (kind) {
    case LaneKind::stream:
      return "stream";
    case LaneKind::communication:
      return "communication";
    case LaneKind::storage:
      return "storage";
    case LaneKind::host_thread:
      break;
  }
  return "host";
}

}  // namespace

StepLanes step_lanes(const Trace& trace, const Result& result) {
  StepLanes lanes;
  const int ranks = std::max<int>(1, trace.rank_count);
  const int columns = std::clamp(all_columns / ranks, fewest_columns, most_columns);
  const Picos end = end_of_drawn(result);
  std::vector<sim::LaneRow> rows = sim::fold_lanes(trace, result, end, columns);
  if (rows.empty()) return lanes;
  lanes.columns = columns;
  lanes.end = end;
  for (int i = 0; i < sim::work_color_count; ++i)
    lanes.colors.emplace_back(sim::describe(static_cast<sim::WorkColor>(i)));
  // Device work before the host's, busier before idle ones.
  const auto lane_of = [&](const sim::LaneRow& row) -> const Lane& { return trace.lanes[index_of(row.lane)]; };
  std::stable_sort(rows.begin(), rows.end(), [&](const sim::LaneRow& a, const sim::LaneRow& b) {
    const auto place = [&](const sim::LaneRow& row) {
      return std::tuple(lane_of(row).rank, lane_of(row).kind == LaneKind::host_thread, -row.busy.count());
    };
    return place(a) < place(b);
  });
  std::map<std::string, std::int64_t> numbers;
  std::map<std::uint16_t, std::size_t> shown;
  for (const sim::LaneRow& row : rows) {
    const Lane& lane = lane_of(row);
    if (ranks > 1 && lane.kind == LaneKind::host_thread) continue;
    if (++shown[lane.rank] > most_lanes) continue;
    StepLane& to = lanes.lanes.emplace_back();
    to.name = row.name;
    to.rank = lane.rank;
    to.kind = kind_words(lane.kind);
    for (const sim::LaneBlock& block : row.blocks) {
      const std::string name(trace.strings.text(trace.ops.name[index_of(block.op)]));
      const auto number = numbers.try_emplace(name, static_cast<std::int64_t>(lanes.names.size()));
      if (number.second) lanes.names.push_back(name);
      const auto x = static_cast<std::int64_t>(block.x * hundredths);
      const std::int64_t width = std::max<std::int64_t>(1, std::llround(block.width * hundredths));
      to.blocks.insert(to.blocks.end(), {x, width, static_cast<std::int64_t>(block.color), number.first->second});
    }
    for (const sim::LaneRun& run : row.runs)
      to.runs.insert(to.runs.end(), {run.first, run.count, static_cast<std::int64_t>(run.color), run.level});
  }
  return lanes;
}

}  // namespace spillway::studies
