// The whole state of a run, as plain values: copy it and you have a fork that continues identically.
//
// Executor<Sink> drives it. This class holds all that needs no sink: diagnosis, conservation, totals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/activity_graph.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/fingerprint.h"
#include "sim/engine/fluid_network.h"
#include "sim/engine/reservoir.h"

namespace spillway::sim {

struct ExecutorOptions {
  TieOrder tie_order{};
};

enum class RunStatus : std::uint8_t {
  finished,  // every activity ended
  paused,    // run_until() reached its limit
  deadlock,  // a cycle of edges and lane order: see Outcome::cycle
  stalled,   // flows at rate 0: see Outcome::waiting
};

struct Outcome {
  RunStatus status = RunStatus::finished;
  Picos end_time{};                // of the last end so far
  std::uint64_t events = 0;        // starts, ends, capacity and reservoir events handled
  std::uint32_t ended = 0;         // activities that ended
  std::uint64_t event_digest = 0;  // of the events in the order they were handled
  std::uint64_t fingerprint = 0;   // of the outcome (fingerprint.h)
  // deadlock: each activity waits for the next one, the last for the first.
  std::vector<ActivityId> cycle;
  // stalled: from a waiting activity to the stalled one that holds it up.
  std::vector<ActivityId> waiting;

  [[nodiscard]] bool ok() const { return status == RunStatus::finished; }
  // One line for a person: "deadlock: 3 -> 7 -> 3 (each waits for the next)".
  [[nodiscard]] std::string text() const;
};

class ExecutorState {
 public:
  static constexpr Picos not_yet = Picos(-1);

  [[nodiscard]] const ActivityGraph& graph() const { return *graph_; }
  [[nodiscard]] Picos now() const { return now_; }
  // not_yet while it hasn't happened.
  [[nodiscard]] Picos start(ActivityId a) const;
  [[nodiscard]] Picos end(ActivityId a) const;
  [[nodiscard]] bool started(ActivityId a) const { return pending_[index(a)] >= running; }
  [[nodiscard]] bool ended(ActivityId a) const { return pending_[index(a)] == done; }
  // Whole columns; rows of activities that haven't started (ended) hold no meaning.
  [[nodiscard]] const std::vector<Picos>& starts() const { return start_; }
  [[nodiscard]] const std::vector<Picos>& ends() const { return end_; }
  // Present rate of a running flow, else 0. O(flows).
  [[nodiscard]] Rate rate(ActivityId a) const;
  [[nodiscard]] FluidNetwork::LinkTotals link_totals(LinkId link) const { return network_.totals(link, now_); }
  [[nodiscard]] const FluidNetwork& network() const { return network_; }
  [[nodiscard]] const Reservoir& reservoir(ReservoirId id) const { return reservoirs_[index(id)]; }

  // The first broken rule in words, or empty. Edges, lags, gaps, releases and delays are kept; each activity ended
  // once. No lane ran more than its width at once; bytes in == bytes out for each link; reservoirs balance.
  // O(activities + edges).
  [[nodiscard]] std::string check_conservation() const;

  // By lane, of what has started; last those on no lane, in id order. O(activities).
  [[nodiscard]] std::vector<LaneDigest> lane_digests() const;
  // Covers everything that decides the future: equal for a fork, whether or not it was run further elsewhere.
  [[nodiscard]] std::uint64_t state_digest() const;
  // Bytes held by graph, columns and queues.
  [[nodiscard]] std::size_t memory_bytes() const;

 protected:
  static constexpr std::uint32_t running = 0xFFFFFFFEu, done = 0xFFFFFFFFu, none = 0xFFFFFFFFu;
  struct LaneState {  // used for lanes wider than one
    std::uint32_t head = none, active = 0;
    bool granted = false, slot_used = false;
    Picos slot_free{};  // when the latest slot came free
  };

  // Values are part of the event digest.
  enum class EventKind : std::uint32_t { start = 1, delay_end, flow_end, capacity, reservoir };

  ExecutorState(ActivityGraph graph, const ExecutorOptions& options);
  // Schedules what may start by itself; the first call only.
  void begin();
  Outcome conclude(RunStatus status);

  void satisfy(std::uint32_t a, Picos at);  // one condition of `a` holds from `at` on
  void follow_edges(std::uint32_t a, EdgeType type);
  void start_flow(std::uint32_t a);
  void after_solve();  // timers of flows and reservoirs
  void change_capacity(std::uint32_t row);
  void advance_reservoir(std::uint32_t reservoir);
  void rearm_reservoir(std::uint32_t reservoir);
  void wide_lane_started(std::uint32_t a);
  void wide_lane_ended(std::uint32_t a);
  [[nodiscard]] std::uint32_t reservoir_timers() const { return static_cast<std::uint32_t>(reservoirs_.size()); }
  void note(EventKind kind, std::uint32_t target) {
    ++events_;
    events_digest_.add(event_word(now_, static_cast<std::uint32_t>(kind), target));
  }
  // t + d; throws InputError naming the activity when that is past the end of time.
  static Picos later(Picos t, Picos d, std::uint32_t a) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(t.count(), d.count(), &sum)) end_of_time(a);
    return Picos(sum);
  }
  [[noreturn]] static void end_of_time(std::uint32_t a);

  std::shared_ptr<const ActivityGraph> graph_;
  EventQueue queue_;
  FluidNetwork network_;
  std::vector<Reservoir> reservoirs_;
  std::vector<std::uint32_t> link_reservoir_;  // reservoir of a link, or none
  std::vector<std::uint32_t> pending_;         // conditions left, or running / done
  std::vector<Picos> start_;                   // earliest start until started
  std::vector<Picos> end_;
  std::vector<LaneState> lanes_;
  Digest events_digest_;
  std::uint64_t events_ = 0;
  std::uint32_t ended_ = 0;
  Picos now_{}, last_end_{};
  bool begun_ = false;

 private:
  void grant(std::uint32_t lane);
  void diagnose(Outcome& outcome) const;
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> unmet() const;
  [[nodiscard]] std::string check_activity(std::uint32_t a) const;
  [[nodiscard]] std::string check_lane(TrackId lane) const;
};

inline void ExecutorState::satisfy(std::uint32_t a, Picos at) {
  const Picos earliest = std::max(start_[a], at);
  start_[a] = earliest;
  if (--pending_[a] != 0) return;
  constexpr auto kind = static_cast<std::uint32_t>(EventKind::start);
  if (earliest <= now_) {
    queue_.dispatch_now(now_, kind, a);
  } else {
    queue_.schedule(earliest, EventPhase::dispatch, kind, a);
  }
}

inline void ExecutorState::follow_edges(std::uint32_t a, EdgeType type) {
  for (const ActivityGraph::Edge& edge : graph_->edges(a))
    if (edge.type == type) satisfy(edge.target, later(now_, edge.lag, edge.target));
}

}  // namespace spillway::sim
