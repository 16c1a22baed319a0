#include "sim/pictures/timeline_lanes.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

namespace spillway::sim {
namespace {

struct ColorEntry {
  std::string_view words, fill;
};
constexpr std::array<ColorEntry, work_color_count> colors = {{
    {"forward", "#0072B2"},
    {"recomputation", "#56B4E9"},
    {"backward", "#D55E00"},
    {"optimizer", "#009E73"},
    {"communication", "#CC79A7"},
    {"copies", "#E69F00"},
    {"drives", "#F0E442"},
    {"other GPU work", "#4D4D4D"},
    {"host calls", "#999999"},
    {"host waits", "#D9D9D9"},
}};

struct Interval {
  Picos start{}, end{};
  OpId op = OpId::none;
};

// The columns of one lane, filled from left to right.
class Folder {
 public:
  Folder(const Trace& trace, Picos span, int columns)
      : ops_(trace.ops),
        scale_(columns / static_cast<double>(span.count())),
        filled_(static_cast<std::size_t>(columns)) {}

  void add(const Interval& interval, LaneRow& row) {
    const WorkColor color = work_color(ops_.kind[index_of(interval.op)], ops_.phase[index_of(interval.op)]);
    const double x = std::max(static_cast<double>(interval.start.count()) * scale_, block_end_);
    const double end = static_cast<double>(interval.end.count()) * scale_;
    row.busy += interval.end - interval.start;
    if (end - x >= 1) {
      row.blocks.push_back({x, end - x, color, interval.op});
      block_end_ = end;
    } else {
      fill(static_cast<double>(interval.start.count()) * scale_, end, color);
    }
  }

  void finish(LaneRow& row) const {
    for (std::size_t column = 0; column < filled_.size(); ++column) {
      const auto& parts = filled_[column];
      double busy = 0;
      for (const double part : parts) busy += part;
      if (busy <= 0) continue;
      const auto color = static_cast<WorkColor>(std::max_element(parts.begin(), parts.end()) - parts.begin());
      const int level = std::min(static_cast<int>(busy * busy_levels), busy_levels - 1), at = static_cast<int>(column);
      const bool goes_on = !row.runs.empty() && row.runs.back().first + row.runs.back().count == at &&
                           row.runs.back().color == color && row.runs.back().level == level;
      if (goes_on)
        ++row.runs.back().count;
      else
        row.runs.push_back({at, 1, color, level});
    }
  }

 private:
  void fill(double x, double end, WorkColor color) {
    constexpr double smallest = 1e-6;  // an op without duration still shows
    const auto last = filled_.size() - 1;
    for (std::size_t column = std::min(static_cast<std::size_t>(x), last); column <= last; ++column) {
      const double left = std::max(x, static_cast<double>(column)),
                   right = std::min(end, static_cast<double>(column + 1));
      if (right <= left && static_cast<double>(column) > x) break;
      filled_[column][static_cast<std::size_t>(color)] += std::max(right - left, smallest);
    }
  }

  const Ops& ops_;
  double scale_;
  double block_end_ = 0;
  std::vector<std::array<double, work_color_count>> filled_;  // by column and colour: the part of the column
};

// In the order in which they ran.
std::vector<std::vector<OpId>> ops_by_lane(const Trace& trace, const Result& result, Picos span) {
  std::vector<std::vector<OpId>> lanes(trace.lanes.size());
  const std::size_t count = std::min({trace.ops.size(), result.op_start.size(), result.op_end.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const Picos start = result.op_start[i], end = result.op_end[i];
    if (start == unknown_time || end == unknown_time || end < start || end < Picos(0) || start >= span) continue;
    lanes[index_of(trace.ops.lane[i])].push_back(static_cast<OpId>(i));
  }
  const auto place = [&](OpId op) {
    return std::tuple(std::max(result.op_start[index_of(op)], Picos(0)), std::min(result.op_end[index_of(op)], span),
                      op);
  };
  for (auto& lane : lanes) std::sort(lane.begin(), lane.end(), [&](OpId a, OpId b) { return place(a) < place(b); });
  return lanes;
}

}  // namespace

std::string lane_name(const Trace& trace, const Lane& lane) {
  const std::string_view own = trace.strings.text(lane.name);
  std::string name = own.empty() ? fmt::format("{} {}", to_string(lane.kind), lane.number) : std::string(own);
  const bool several_devices = std::any_of(trace.lanes.begin(), trace.lanes.end(), [&](const Lane& other) {
    return other.rank == lane.rank && other.device >= 0 && lane.device >= 0 && other.device != lane.device;
  });
  if (several_devices) name = fmt::format("GPU {} {}", lane.device, name);
  return trace.rank_count > 1 ? fmt::format("rank {} {}", lane.rank, name) : name;
}

WorkColor work_color(OpKind kind, Phase phase) {
  if (kind == OpKind::collective) return WorkColor::communication;
  if (is_copy(kind)) return WorkColor::copy;
  if (kind == OpKind::storage_read || kind == OpKind::storage_write) return WorkColor::storage;
  if (kind == OpKind::device_sync || kind == OpKind::stream_sync || kind == OpKind::event_sync)
    return WorkColor::waiting;
  switch (phase) {
    case Phase::forward:
      return WorkColor::forward;
    case Phase::backward:
      return WorkColor::backward;
    case Phase::optimizer:
      return WorkColor::optimizer;
    case Phase::communication:
      return WorkColor::communication;
    case Phase::recompute:
      return WorkColor::recompute;
    case Phase::unknown:
      break;
  }
  return is_host_call(kind) ? WorkColor::host_call : WorkColor::other;
}

std::string_view describe(WorkColor color) { return colors[static_cast<std::size_t>(color)].words; }
std::string_view fill_of(WorkColor color) { return colors[static_cast<std::size_t>(color)].fill; }

std::vector<LaneRow> fold_lanes(const Trace& trace, const Result& result, Picos span, int columns) {
  std::vector<LaneRow> rows;
  if (span <= Picos(0)) return rows;
  const auto lanes = ops_by_lane(trace, result, span);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].empty()) continue;
    LaneRow row;
    row.lane = static_cast<LaneId>(i);
    row.name = lane_name(trace, trace.lanes[i]);
    Folder folder(trace, span, columns);
    for (const OpId op : lanes[i])
      folder.add({std::max(result.op_start[index_of(op)], Picos(0)), std::min(result.op_end[index_of(op)], span), op},
                 row);
    folder.finish(row);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const LaneRow& a, const LaneRow& b) {
    const Lane &x = trace.lanes[index_of(a.lane)], &y = trace.lanes[index_of(b.lane)];
    return std::tuple(x.rank, x.kind) < std::tuple(y.rank, y.kind);
  });
  return rows;
}

}  // namespace spillway::sim
