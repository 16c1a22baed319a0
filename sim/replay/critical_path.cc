#include "sim/replay/critical_path.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/stop.h"

namespace spillway::sim {
namespace {

Binding binding_of(WorkClass work) {
  switch (work) {
    case WorkClass::compute:
      return Binding::compute;
    case WorkClass::memory:
      return Binding::hbm;
    case WorkClass::pcie:
      return Binding::pcie;
    case WorkClass::network:
      return Binding::network;
    case WorkClass::host:
      return Binding::host;
    case WorkClass::storage:
      return Binding::storage;
  }
  return Binding::idle;
}

class Walk {
 public:
  Walk(const Trace& trace, const LoweredTrace& lowered, const ActivityGraph& graph, std::span<const Picos> start,
       std::span<const Picos> end, const PeriodicRun* whole)
      : trace_(trace), lowered_(lowered), graph_(graph), start_(start), end_(end), whole_(whole) {
    index_predecessors();
  }

  CriticalPath run() {
    if (start_.empty()) return {};
    const auto last = std::max_element(end_.begin(), end_.end());
    auto at = static_cast<std::uint32_t>(last - end_.begin());
    reached_ = *last;
    if (whole_ != nullptr) {
      if (whole_->shift_of(op(at)) != whole_->longer()) {
        CriticalPath refused;
        refused.is_told = false;
        return refused;
      }
      reached_ += whole_->longer();
      later_ = whole_->times();
      tell(at);
    }
    bool from_end = true;
    while (at != none) {
      if (from_end && whole_ != nullptr) skip_repetitions(at);
      if (from_end) add_own(at);
      step_back(at, from_end);
      if (at != none && whole_ != nullptr) tell(at);
    }
    std::reverse(path_.begin(), path_.end());
    return {.steps = std::move(path_), .unexplained = std::move(unexplained_), .repeated = repeated_};
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;

  // Of a folded step `at` stands for what it is `later_` periods later.
  void tell(std::uint32_t& at) {
    const PeriodicRun::Place place = whole_->told({at, later_});
    at = place.activity;
    later_ = place.later;
  }
  [[nodiscard]] bool may_hold(std::uint32_t source) const {
    return whole_ == nullptr || whole_->moves_along(source, later_);
  }

  // Where the path was a number of periods later, it takes the same way again and again.
  void skip_repetitions(std::uint32_t at) {
    if (skipped_ || !whole_->is_inserted({at, later_})) return;
    const auto [seen, is_new] = seen_.try_emplace(at, Seen{later_, reached_, parts_});
    if (is_new) return;
    const std::int64_t periods = seen->second.later - later_, rounds = (later_ - 1) / periods;
    SPILLWAY_ASSERT(periods > 0 && seen->second.reached - reached_ == whole_->period() * periods);
    for (std::size_t i = 0; i < parts_.size(); ++i) repeated_[i] = (parts_[i] - seen->second.parts[i]) * rounds;
    later_ -= rounds * periods;
    reached_ -= whole_->period() * (rounds * periods);
    skipped_ = true;
  }

  // Those alone that a start waited for to the last picosecond.
  void index_predecessors() {
    const std::uint32_t n = graph_.size();
    first_.assign(n + std::size_t{2}, 0);  // shifted by one until all are placed
    lane_before_.assign(n, none);
    for (std::uint32_t a = 0; a < n; ++a) {
      for (const ActivityGraph::Edge& edge : graph_.edges(a))
        if (holds(a, edge)) ++first_[edge.target + std::size_t{2}];
      const auto next = index(graph_.lane_next(a));
      if (next < n) lane_before_[next] = a;
    }
    for (std::uint32_t a = 0; a < n; ++a) first_[a + std::size_t{2}] += first_[a + std::size_t{1}];
    predecessors_.resize(first_.back());
    for (std::uint32_t a = 0; a < n; ++a)
      for (const ActivityGraph::Edge& edge : graph_.edges(a))
        if (holds(a, edge)) predecessors_[first_[edge.target + std::size_t{1}]++] = a;
  }
  [[nodiscard]] bool holds(std::uint32_t source, const ActivityGraph::Edge& edge) const {
    return (edge.type == EdgeType::end_to_start ? end_[source] : start_[source]) + edge.lag == start_[edge.target];
  }
  // The first of the source's edges that held `at`. Precondition: there is one.
  [[nodiscard]] const ActivityGraph::Edge& edge_to(std::uint32_t at, std::uint32_t source) const {
    const auto edges = graph_.edges(source);
    return *std::find_if(edges.begin(), edges.end(),
                         [&](const ActivityGraph::Edge& edge) { return edge.target == at && holds(source, edge); });
  }

  // The last `time` of what is not yet accounted for.
  void add(std::uint32_t at, Binding binding, Picos time, bool waits) {
    if (time == Picos(0)) return;
    const Picos begin = reached_ - time;
    parts_[static_cast<std::size_t>(binding)] += time;
    const bool goes_on = !path_.empty() && path_.back().op == op(at) && path_.back().binding == binding &&
                         path_.back().waits == waits && path_.back().begin == reached_;
    if (goes_on)
      path_.back().begin = begin;
    else
      path_.push_back({op(at), begin, reached_, binding, waits});
    reached_ = begin;
  }

  void add_unexplained(std::uint32_t a, Picos time, bool waits) {
    add(a, Binding::idle, time, waits);
    if (time > Picos(0)) unexplained_.emplace_back(op(a), time);
  }

  void add_own(std::uint32_t a) {
    const auto& kept = lowered_.unexplained;
    const auto found = std::lower_bound(kept.begin(), kept.end(), std::pair(ActivityId{a}, Picos(0)));
    const bool has = found != kept.end() && found->first == ActivityId{a};
    const Picos unexplained = has ? std::min(found->second, end_[a] - start_[a]) : Picos(0);
    add_unexplained(a, unexplained, false);
    add(a, own_binding(a), end_[a] - start_[a] - unexplained, false);
  }

  // Of the edge from `source` with this lag.
  [[nodiscard]] Picos unexplained_of(std::uint32_t target, std::uint32_t source, Picos lag) const {
    const auto& lags = lowered_.lags;
    const auto before = [](const LoweredTrace::KeptLag& kept, ActivityId wanted) { return kept.target < wanted; };
    for (auto at = std::lower_bound(lags.begin(), lags.end(), ActivityId{target}, before);
         at != lags.end() && at->target == ActivityId{target}; ++at)
      if (at->source == ActivityId{source} && at->lag == lag) return at->unexplained;
    return {};
  }

  [[nodiscard]] OpId op(std::uint32_t a) const { return lowered_.op[a]; }
  [[nodiscard]] bool on_host(std::uint32_t a) const { return is_host_call(trace_.ops.kind[index_of(op(a))]); }
  [[nodiscard]] Binding own_binding(std::uint32_t a) const {
    const OpKind kind = trace_.ops.kind[index_of(op(a))];
    if (kind == OpKind::device_sync || kind == OpKind::stream_sync || kind == OpKind::event_sync)
      return Binding::launch_latency;
    return binding_of(lowered_.work[index_of(op(a))]);
  }

  // A collective that starts later than what it waits for has ended: its other ranks come late.
  [[nodiscard]] bool waits_for_ranks(std::uint32_t at, const ActivityGraph::Edge& edge) const {
    return edge.type == EdgeType::end_to_start && trace_.ops.kind[index_of(op(at))] == OpKind::collective;
  }

  // Moves to the constraint that held the start of `at`; `at` becomes none at the beginning of time.
  void step_back(std::uint32_t& at, bool& from_end) {
    const Picos start = start_[at];
    const Binding pause = on_host(at) ? Binding::host : Binding::launch_latency;
    const std::uint32_t before = lane_before_[at];
    if (before != none && may_hold(before) && end_[before] + graph_.gap(at) == start) {
      add(at, pause, graph_.gap(at), true);
      at = before;
      from_end = true;
      return;
    }
    for (std::uint32_t p = first_[at]; p < first_[at + 1]; ++p) {
      const std::uint32_t source = predecessors_[p];
      if (!may_hold(source)) continue;
      const ActivityGraph::Edge& edge = edge_to(at, source);
      const Picos unexplained = unexplained_of(at, source, edge.lag);
      add_unexplained(at, unexplained, true);
      const bool by_host = unexplained > Picos(0) && edge.type == EdgeType::start_to_start;
      add(at,
          by_host                     ? Binding::host
          : waits_for_ranks(at, edge) ? Binding::network
                                      : pause,
          edge.lag - unexplained, true);
      at = source;
      from_end = edge.type == EdgeType::end_to_start;
      return;
    }
    if (step_back_on_wide_lane(at, from_end)) return;
    // Work of the GPU that nothing holds lies where it was recorded.
    if (on_host(at))
      add(at, Binding::host, start, true);
    else
      add_unexplained(at, start, true);
    at = none;
  }

  // A lane that runs several at once held it until one of them ended, or until the one before it started.
  bool step_back_on_wide_lane(std::uint32_t& at, bool& from_end) {
    if (graph_.lane(at) == no_lane || graph_.lane_width(graph_.lane(at)) == 1) return false;
    const std::uint32_t before = lane_before_[at];
    for (std::uint32_t other = before; other != none; other = lane_before_[other]) {
      if (end_[other] != start_[at]) continue;
      at = other;
      from_end = true;
      return true;
    }
    if (before == none || start_[before] != start_[at]) return false;
    at = before;
    from_end = false;
    return true;
  }

  const Trace& trace_;
  const LoweredTrace& lowered_;
  const ActivityGraph& graph_;
  std::span<const Picos> start_, end_;
  std::vector<std::uint32_t> first_, lane_before_;
  std::vector<std::uint32_t> predecessors_;
  std::vector<PathStep> path_;  // backwards
  std::vector<std::pair<OpId, Picos>> unexplained_;
  Picos reached_{};
  // Of a folded step.
  using Parts = std::array<Picos, binding_count>;
  struct Seen {
    std::int64_t later = 0;
    Picos reached{};
    Parts parts{};
  };
  const PeriodicRun* whole_;
  std::int64_t later_ = 0;
  bool skipped_ = false;
  std::unordered_map<std::uint32_t, Seen> seen_;
  Parts parts_{}, repeated_{};
};

}  // namespace

CriticalPath critical_path(const Trace& trace, const LoweredTrace& lowered, const ActivityGraph& graph,
                           std::span<const Picos> start, std::span<const Picos> end, const PeriodicRun* whole) {
  check_stop();
  return Walk(trace, lowered, graph, start, end, whole).run();
}

std::array<Picos, binding_count> sum_by_binding(std::span<const PathStep> path) {
  std::array<Picos, binding_count> parts{};
  for (const PathStep& step : path) parts[static_cast<std::size_t>(step.binding)] += step.end - step.begin;
  return parts;
}

}  // namespace spillway::sim
