#include "studies/diagnosis/work_sum.h"

#include <algorithm>
#include <utility>

#include "sim/pictures/timeline_lanes.h"

namespace spillway::studies {
namespace {

std::string_view kind_words(OpKind kind) {
  switch (kind) {
    case OpKind::launch:
      return "launches";
    case OpKind::device_sync:
    case OpKind::stream_sync:
    case OpKind::event_sync:
      return "waits of the host";
    case OpKind::event_record:
    case OpKind::stream_wait:
      return "events";
    case OpKind::device_malloc:
    case OpKind::device_free:
      return "driver allocations";
    case OpKind::host_work:
      return "other host work";
    case OpKind::kernel:
      return "kernels";
    case OpKind::copy_host_to_device:
      return "copies to the GPU";
    case OpKind::copy_device_to_host:
      return "copies to the host";
    case OpKind::copy_device_to_device:
      return "copies within the GPU";
    case OpKind::copy_peer:
      return "copies between GPUs";
    case OpKind::memset:
      return "memory sets";
    case OpKind::collective:
      return "collectives";
    case OpKind::storage_read:
      return "reads from drives";
    case OpKind::storage_write:
      return "writes to drives";
  }
  return "other";
}

// WorkRow and KindRow alike.
template <class Row>
void count(Row& row, std::uint32_t op, std::int64_t inside, std::int64_t bytes, std::int64_t runs) {
  if (row.count == 0 || inside > row.longest) {
    row.longest = inside;
    row.example = op;
  }
  row.count += static_cast<std::uint64_t>(runs);
  row.total += inside * runs;
  row.bytes += bytes * runs;
}

template <class Row>
void sort_by_time(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.total > b.total; });
}

}  // namespace

WorkSum::WorkSum(const Trace& trace, Stretch stretch) : trace_(trace), stretch_(stretch), kinds_(op_kind_count) {}

void WorkSum::lane(std::string name) {
  lane_ = std::move(name);
  row_of_.assign(trace_.strings.size() * phase_count, 0);
}

void WorkSum::add(OpId op, std::int64_t begin, std::int64_t end, std::int64_t runs) {
  const std::int64_t inside = std::min(end, stretch_.end) - std::max(begin, stretch_.begin);
  const bool touches = inside > 0 || (begin == end && begin >= stretch_.begin && begin < stretch_.end);
  if (!touches) return;
  const std::size_t i = index_of(op);
  const Phase phase = trace_.ops.phase[i];
  std::uint32_t& place = row_of_[static_cast<std::size_t>(trace_.ops.name[i]) * phase_count + index_of(phase)];
  if (place == 0) {
    rows_.push_back({.name = std::string(trace_.strings.text(trace_.ops.name[i])),
                     .lane = lane_,
                     .phase = std::string(to_string(phase))});
    place = static_cast<std::uint32_t>(rows_.size());
  }
  const std::int64_t bytes = trace_.ops.bytes[i].count();
  count(rows_[place - 1], static_cast<std::uint32_t>(i), inside, bytes, runs);
  count(kinds_[static_cast<std::size_t>(trace_.ops.kind[i])], static_cast<std::uint32_t>(i), inside, bytes, runs);
}

std::vector<WorkRow> WorkSum::rows() && {
  sort_by_time(rows_);
  return std::move(rows_);
}

std::vector<KindRow> WorkSum::kinds() const {
  std::vector<KindRow> found;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const KindRow& of = kinds_[kind];
    if (of.count == 0) continue;
    const std::string_view name = kind_words(static_cast<OpKind>(kind));
    const auto same = std::find_if(found.begin(), found.end(), [name](const KindRow& row) { return row.name == name; });
    KindRow& row = same == found.end() ? found.emplace_back() : *same;
    row.name = name;
    if (of.longest >= row.longest) {
      row.longest = of.longest;
      row.example = of.example;
    }
    row.count += of.count;
    row.total += of.total;
    row.bytes += of.bytes;
  }
  sort_by_time(found);
  return found;
}

WorkSum work_of(const Trace& trace, const Result& result, Stretch stretch) {
  WorkSum sum(trace, stretch);
  std::vector<std::vector<std::size_t>> lanes(trace.lanes.size());
  const std::size_t count = std::min({trace.ops.size(), result.op_start.size(), result.op_end.size()});
  for (std::size_t i = 0; i < count; ++i)
    if (result.op_start[i] != unknown_time && result.op_end[i] != unknown_time)
      lanes[index_of(trace.ops.lane[i])].push_back(i);
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    if (lanes[l].empty()) continue;
    sum.lane(lane_name(trace, trace.lanes[l]));
    for (const std::size_t i : lanes[l])
      sum.add(static_cast<OpId>(i), result.op_start[i].count(), result.op_end[i].count());
  }
  return sum;
}

}  // namespace spillway::studies
