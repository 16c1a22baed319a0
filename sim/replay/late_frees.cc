#include "sim/replay/late_frees.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "sim/replay/planned_trace.h"

namespace spillway::sim {
namespace {

// Of a communicator's stream: by the column of the call that launched it, when it and all before it have ended.
using StreamEnds = std::vector<std::pair<std::uint32_t, Picos>>;

std::map<LaneId, StreamEnds> ends_of(const Trace& trace, std::span<const Picos> op_end) {
  std::map<LaneId, StreamEnds> lanes;
  for (const Collective& each : trace.collectives) {
    const std::size_t op = index_of(each.op);
    const OpId by = trace.ops.launched_by[op];
    if (by == OpId::none || op_end[op] == unknown_time) continue;
    lanes[trace.ops.lane[op]].emplace_back(static_cast<std::uint32_t>(index_of(by)), op_end[op]);
  }
  for (auto& [lane, ends] : lanes) {
    std::sort(ends.begin(), ends.end());
    Picos latest{};
    for (auto& [call, end] : ends) end = latest = std::max(latest, end);
  }
  return lanes;
}

// By storage: the communicators' streams that used it.
std::map<std::uint32_t, std::vector<LaneId>> users_of(const Trace& trace) {
  std::map<std::uint32_t, std::vector<LaneId>> users;
  for (const Use& use : trace.uses) {
    if (trace.ops.kind[index_of(use.op)] != OpKind::collective) continue;
    const LaneId lane = trace.ops.lane[index_of(use.op)];
    std::vector<LaneId>& own = users[trace.tensors.storage[index_of(use.tensor)]];
    if (std::find(own.begin(), own.end(), lane) == own.end()) own.push_back(lane);
  }
  return users;
}

// When all that was launched by then has ended; 0: nothing was.
Picos end_by(const StreamEnds& ends, std::uint32_t call) {
  const auto behind = std::upper_bound(ends.begin(), ends.end(), std::pair(call, Picos::max()));
  return behind == ends.begin() ? Picos(0) : std::prev(behind)->second;
}

struct Waiting {
  Picos until{};
  MemoryEvent event;
};
struct IsLater {
  bool operator()(const Waiting& a, const Waiting& b) const { return a.until > b.until; }
};

// A device's freed blocks that are still in use.
class LateBlocks {
 public:
  void add(const Waiting& waiting) { queue_.push(waiting); }
  // Those that are free by now, as the host sees it behind `at`.
  void complete_until(Picos now, const MemoryEvent& at, std::vector<MemoryEvent>& out) {
    for (; !queue_.empty() && queue_.top().until <= now; queue_.pop()) {
      MemoryEvent event = queue_.top().event;
      event.anchor = at.anchor;
      event.time = at.time;
      out.push_back(event);
    }
    last_ = at;
  }
  void complete(std::vector<MemoryEvent>& out) { complete_until(Picos::max(), MemoryEvent(last_), out); }

 private:
  std::priority_queue<Waiting, std::vector<Waiting>, IsLater> queue_;
  MemoryEvent last_;
};

}  // namespace

void add_late_frees(Trace& trace, std::span<const Picos> op_start, std::span<const Picos> op_end) {
  const std::map<LaneId, StreamEnds> lanes = ends_of(trace, op_end);
  const auto users = users_of(trace);
  const std::vector<Picos> times = event_times(trace, {}, op_start, op_end);
  std::map<std::int16_t, LateBlocks> late;
  std::vector<MemoryEvent> events;
  events.reserve(2 * trace.memory_events.size());
  for (std::size_t e = 0; e < trace.memory_events.size(); ++e) {
    MemoryEvent event = trace.memory_events[e];
    LateBlocks& blocks = late[event.device];
    if (event.action == MemoryAction::allocate) blocks.complete_until(times[e], event, events);
    events.push_back(event);
    if (event.action != MemoryAction::free_requested) continue;
    Picos until{};
    if (event.tensor != TensorId::none && event.anchor != OpId::none) {
      const auto used_by = users.find(trace.tensors.storage[index_of(event.tensor)]);
      for (const LaneId lane : used_by == users.end() ? std::vector<LaneId>() : used_by->second)
        if (const auto ends = lanes.find(lane); ends != lanes.end())
          until = std::max(until, end_by(ends->second, static_cast<std::uint32_t>(index_of(event.anchor))));
    }
    event.action = MemoryAction::free_completed;
    if (until > times[e])
      blocks.add({until, event});
    else
      events.push_back(event);
  }
  for (auto& [device, blocks] : late) blocks.complete(events);  // the host waits for the GPU between steps
  trace.memory_events = std::move(events);
}

}  // namespace spillway::sim
