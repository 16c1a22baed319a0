// The cold side of an executor's state: totals, digests, conservation, what a standstill is due to.
#include <fmt/format.h>

#include <queue>

#include "base/input_error.h"
#include "sim/engine/executor_state.h"

namespace spillway::sim {

std::string Outcome::text() const {
  const auto chain = [](const std::vector<ActivityId>& ids) {
    std::string text;
    for (const ActivityId id : ids) text += fmt::format("{}{}", text.empty() ? "" : " -> ", index(id));
    return text;
  };
  switch (status) {
    case RunStatus::finished:
      return fmt::format("finished: {} activities in {} ps", ended, end_time.count());
    case RunStatus::paused:
      return fmt::format("paused: {} activities ended", ended);
    case RunStatus::deadlock:
      return fmt::format("deadlock: {} -> {} (each waits for the next)", chain(cycle), index(cycle.front()));
    case RunStatus::stalled:
      return fmt::format("stalled: {} (each waits for the next; the last can't go on)", chain(waiting));
  }
  return {};
}

Picos ExecutorState::start(ActivityId a) const { return started(a) ? start_[index(a)] : not_yet; }

Picos ExecutorState::end(ActivityId a) const { return ended(a) ? end_[index(a)] : not_yet; }

Rate ExecutorState::rate(ActivityId a) const {
  for (std::uint32_t slot = 0; slot < network_.slot_count(); ++slot) {
    const FluidNetwork::Flow& flow = network_.flow(slot);
    if (flow.active && flow.owner == index(a)) return flow.rate;
  }
  return Rate{};
}

std::vector<LaneDigest> ExecutorState::lane_digests() const {
  const ActivityGraph& g = *graph_;
  std::vector<LaneDigest> lanes(g.lane_count() + 1);
  for (std::uint32_t a = 0; a < g.size(); ++a) {
    if (pending_[a] < running) continue;
    const bool ran = pending_[a] == done;
    const TrackId lane = g.lane(a);
    lanes[lane == no_lane ? g.lane_count() : index(lane)].add(start_[a], ran ? end_[a] - start_[a] : not_yet,
                                                              static_cast<std::uint32_t>(g.kind(a)));
  }
  return lanes;
}

std::uint64_t ExecutorState::state_digest() const {
  Digest digest;
  digest.add(event_word(now_, ended_, graph_->size()));
  digest.add(events_digest_.value());
  digest.add(queue_.scheduled());
  for (std::uint32_t a = 0; a < graph_->size(); ++a) digest.add(event_word(start_[a], pending_[a], a));
  for (std::uint32_t slot = 0; slot < network_.slot_count(); ++slot) {
    const FluidNetwork::Flow& flow = network_.flow(slot);
    if (flow.active) digest.add(event_word(flow.end, flow.owner, slot));
  }
  for (const Reservoir& reservoir : reservoirs_) {
    digest.add(static_cast<std::uint64_t>(reservoir.level()));
    digest.add(static_cast<std::uint64_t>(reservoir.stage()));
  }
  return digest.value();
}

std::size_t ExecutorState::memory_bytes() const {
  return graph_->memory_bytes() + pending_.capacity() * sizeof(std::uint32_t) +
         (start_.capacity() + end_.capacity()) * sizeof(Picos) + queue_.size_with_stale() * sizeof(EventQueue::Event) +
         network_.slot_count() * sizeof(FluidNetwork::Flow);
}

std::string ExecutorState::check_activity(std::uint32_t a) const {
  const ActivityGraph& g = *graph_;
  const bool has_started = pending_[a] >= running, has_ended = pending_[a] == done;
  if (has_started && start_[a] < g.release(a)) return fmt::format("activity {} started before its release", a);
  if (has_ended && g.kind(a) != ActivityKind::flow && (end_[a] - start_[a]).count() != g.work(a))
    return fmt::format("activity {} didn't last its duration", a);
  if (has_ended && end_[a] < start_[a]) return fmt::format("activity {} ended before it started", a);
  std::string broken;
  const auto check = [&](const ActivityGraph::Edge& edge) {
    if (pending_[edge.target] < running) return;
    const bool from_end = edge.type == EdgeType::end_to_start;
    const bool held = from_end ? !has_ended : !has_started;
    if (held || start_[edge.target] < (from_end ? end_[a] : start_[a]) + edge.lag)
      broken = fmt::format("activity {} started before its edge from {} let it", edge.target, a);
  };
  for (const ActivityGraph::Edge& edge : g.edges(a)) check(edge);
  return broken;
}

std::string ExecutorState::check_lane(TrackId lane) const {
  const std::uint32_t width = graph_->lane_width(lane);
  std::priority_queue<Picos, std::vector<Picos>, std::greater<>> ends;  // of what runs
  Picos last_start{};
  for (std::uint32_t a = index(graph_->lane_first(lane)); a != none; a = index(graph_->lane_next(a))) {
    if (pending_[a] < running) continue;
    if (start_[a] < last_start) return fmt::format("activity {} overtook another on lane {}", a, index(lane));
    last_start = start_[a];
    const Picos gap = width == 1 ? graph_->gap(a) : Picos{};
    while (!ends.empty() && ends.top() <= start_[a] - gap) ends.pop();
    if (ends.size() >= width) return fmt::format("lane {} ran too many at once when {} started", index(lane), a);
    ends.push(pending_[a] == done ? end_[a] : Picos::max());
  }
  return {};
}

std::string ExecutorState::check_conservation() const {
  std::uint32_t finished = 0;
  for (std::uint32_t a = 0; a < graph_->size(); ++a) {
    if (std::string broken = check_activity(a); !broken.empty()) return broken;
    finished += pending_[a] == done ? 1u : 0u;
  }
  if (finished != ended_) return fmt::format("{} activities ended, {} ends were handled", finished, ended_);
  for (std::uint32_t lane = 0; lane < graph_->lane_count(); ++lane)
    if (std::string broken = check_lane(TrackId{lane}); !broken.empty()) return broken;
  if (!network_.conserves(now_)) return "bytes in differ from bytes out on a link";
  for (std::size_t r = 0; r < reservoirs_.size(); ++r)
    if (!reservoirs_[r].conserves()) return fmt::format("reservoir {} doesn't balance", r);
  return {};
}

// What `a`, not started, waits for: lists the sources of its unmet conditions, lowest id first.
std::vector<std::vector<std::uint32_t>> ExecutorState::unmet() const {
  const ActivityGraph& g = *graph_;
  std::vector<std::vector<std::uint32_t>> sources(g.size());
  for (std::uint32_t a = 0; a < g.size(); ++a) {
    const auto add = [&](const ActivityGraph::Edge& edge) {
      const bool met = edge.type == EdgeType::end_to_start ? pending_[a] == done : pending_[a] >= running;
      if (!met && pending_[edge.target] < running) sources[edge.target].push_back(a);
    };
    for (const ActivityGraph::Edge& edge : g.edges(a)) add(edge);
    const std::uint32_t next = index(g.lane_next(a));
    if (next == none || pending_[a] == done || pending_[next] >= running) continue;
    const TrackId lane = g.lane(a);
    // A wide lane holds up the next one only until this one has started and a slot is free.
    const bool room = pending_[a] == running && lanes_[index(lane)].active < g.lane_width(lane);
    if (g.lane_width(lane) == 1 || !room) sources[next].push_back(a);
  }
  return sources;
}

// From the lowest unstarted activity, always to the first unmet condition: ends at one that can't go on by
// itself (a stalled flow), or comes round in a cycle.
void ExecutorState::diagnose(Outcome& outcome) const {
  const std::vector<std::vector<std::uint32_t>> sources = unmet();
  std::vector<std::uint32_t> seen(graph_->size(), none);
  std::uint32_t a = 0;
  while (pending_[a] == done) ++a;
  std::vector<ActivityId> walk;
  for (;;) {
    if (seen[a] != none) {
      outcome.status = RunStatus::deadlock;
      outcome.cycle.assign(walk.begin() + seen[a], walk.end());
      return;
    }
    seen[a] = static_cast<std::uint32_t>(walk.size());
    walk.push_back(ActivityId{a});
    if (pending_[a] >= running || sources[a].empty()) break;
    a = sources[a].front();
  }
  outcome.status = RunStatus::stalled;
  outcome.waiting = std::move(walk);
}

}  // namespace spillway::sim
