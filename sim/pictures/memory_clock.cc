#include "sim/pictures/memory_clock.h"

#include <algorithm>
#include <map>

#include "base/stop.h"
#include "sim/replay/planned_trace.h"
#include "traces/host_order.h"

namespace spillway::sim {
namespace {

struct Work {
  std::int64_t issued;  // place in host order
  Picos start, end;
  Picos ended{};  // the latest end of the works up to it
};

// Replayed device work in the order it was issued: of each stream, and of all streams of a device.
class IssuedWork {
 public:
  IssuedWork(const Trace& trace, const ReplayTimes& times, const std::vector<std::int64_t>& issued) {
    const Ops& ops = trace.ops;
    for (std::size_t i = 0; i < std::min(ops.size(), times.start.size()); ++i) {
      check_stop();
      if (!is_device_work(ops.kind[i]) || times.start[i] == unknown_time) continue;
      const Lane& lane = trace.lanes[index_of(ops.lane[i])];
      if (lane.kind != LaneKind::stream) continue;
      const Work work{issued[i], times.start[i], times.end[i]};
      by_lane_[ops.lane[i]].push_back(work);
      by_device_[{lane.rank, lane.device}].push_back(work);
    }
    for (auto& [lane, works] : by_lane_) sort(works);
    for (auto& [device, works] : by_device_) sort(works);
  }

  // Null: there is none.
  [[nodiscard]] const std::vector<Work>* of(const Trace& trace, const MemoryEvent& event) const {
    if (event.stream != LaneId::none)
      if (const auto found = by_lane_.find(event.stream); found != by_lane_.end()) return &found->second;
    const std::uint16_t rank = event.anchor == OpId::none ? std::uint16_t{0} : rank_of(trace, event.anchor);
    if (const auto found = by_device_.find({rank, event.device}); found != by_device_.end()) return &found->second;
    // Ranks may number their devices on: what runs on a rank runs on its own.
    const auto first = by_device_.lower_bound({rank, std::int16_t{-1}});
    return first != by_device_.end() && first->first.first == rank ? &first->second : nullptr;
  }

 private:
  static std::uint16_t rank_of(const Trace& trace, OpId op) {
    return trace.lanes[index_of(trace.ops.lane[index_of(op)])].rank;
  }
  static void sort(std::vector<Work>& works) {
    std::sort(works.begin(), works.end(), [](const Work& a, const Work& b) { return a.issued < b.issued; });
    Picos ended{};
    for (Work& work : works) work.ended = ended = std::max(ended, work.end);
  }

  std::map<LaneId, std::vector<Work>> by_lane_;
  std::map<std::pair<std::uint16_t, std::int16_t>, std::vector<Work>> by_device_;
};

// Where each device's events have got to: no event lies before the one ahead of it on its device. Devices have
// allocators of their own, and a trace may have all of one rank's events before the next rank's.
class Reached {
 public:
  std::int64_t at_least(std::int16_t device, std::int64_t place) {
    const auto [found, is_first] = by_device_.try_emplace(device, place);
    if (!is_first) found->second = std::max(found->second, place);
    return found->second;
  }

 private:
  std::map<std::int16_t, std::int64_t> by_device_;
};

// By op: the last place of what it issued, its own works included.
std::vector<std::int64_t> issued_until(const Trace& trace, const std::vector<std::int64_t>& issued) {
  std::vector<std::int64_t> until = issued;
  for (std::size_t i = 0; i < issued.size(); ++i) {
    const OpId by = trace.ops.launched_by[i];
    if (by != OpId::none) until[index_of(by)] = std::max(until[index_of(by)], issued[i]);
  }
  return until;
}

Picos on_gpu(const std::vector<Work>& works, std::int64_t issued_before, bool allocates) {
  const auto next =
      std::partition_point(works.begin(), works.end(), [&](const Work& work) { return work.issued <= issued_before; });
  if (allocates && next != works.end()) return next->start;
  return next == works.begin() ? Picos(0) : (next - 1)->ended;
}

}  // namespace

std::vector<std::int64_t> issue_places(const Trace& trace) {
  std::vector<std::int64_t> places(trace.ops.size(), 0);
  std::int64_t place = 0;
  for (const OpId op : host_order(trace)) places[index_of(op)] = place++;
  return places;
}

std::vector<std::int64_t> event_places(const Trace& trace, const ReplayTimes& times, MemoryClock clock) {
  std::vector<std::int64_t> places(trace.memory_events.size(), 0);
  const std::vector<Picos> asked = event_times(trace, times.gate, times.start, times.end);
  Reached reached;
  if (clock == MemoryClock::host) {
    for (std::size_t e = 0; e < places.size(); ++e)
      places[e] = reached.at_least(trace.memory_events[e].device, asked[e].count());
    return places;
  }
  const std::vector<std::int64_t> issued = issue_places(trace), until = issued_until(trace, issued);
  const IssuedWork works(trace, times, issued);
  for (std::size_t e = 0; e < places.size(); ++e) {
    check_stop();
    const MemoryEvent& event = trace.memory_events[e];
    if (event.anchor == OpId::none) {
      places[e] = reached.at_least(event.device, 0);
      continue;
    }
    const std::size_t op = index_of(event.anchor);
    std::int64_t place = 0;
    if (clock == MemoryClock::program) {
      place = until[op] + 1;
    } else {
      place = asked[e].count();  // no work on the GPU before the host has asked for it
      const auto* const issued_work = works.of(trace, event);
      const bool by_transfer = !is_host_call(trace.ops.kind[op]) && !is_device_work(trace.ops.kind[op]);
      if (issued_work != nullptr && !by_transfer)
        place = std::max(place, on_gpu(*issued_work, until[op], event.action == MemoryAction::allocate).count());
    }
    places[e] = reached.at_least(event.device, place);
  }
  return places;
}

}  // namespace spillway::sim
