// Runs an ActivityGraph in simulated time.
//
//   ActivityGraph g;
//   const TrackId lane = g.add_lane();
//   const LinkId link = g.add_link(rate_from_bytes_per_second(64e9));
//   const PathId path = g.add_path({{link}});
//   const ActivityId kernel = g.add_delay(lane, microseconds(10));
//   const ActivityId copy = g.add_flow(no_lane, 1 << 20, path);
//   g.add_edge(kernel, copy);
//   g.finish();
//   Executor<> executor(std::move(g));
//   const Outcome outcome = executor.run();
//
// A *sink* watches. Each member is optional and costs nothing when absent:
//   void on_start(ActivityId, Picos)           the activity starts (phase dispatch)
//   void on_end(ActivityId, Picos)             it ends (phase completion; instants and empty flows: dispatch)
//   void on_rate(ActivityId, Picos, Rate)      a flow's rate changed (phase resolve)
//   void on_instant(Executor&, EventPhase, Picos)   called with
//       EventPhase::free, then EventPhase::allocation    after ends at this instant, before anything else starts
//       EventPhase::sampling                        once the instant is over and rates are solved
// A *controller* is a sink whose on_instant calls append(), block(), unblock() or set_capacity(); what it
// lets start at once does so at the same instant, which then goes through its phases again.
//
// Cost: a delay on a lane about 100-200 ns in all; a flow one or two solves of its component.
// Fork: copying an executor copies its whole state (the graph is shared until one of them appends).
// Errors: InputError when the clock would pass Picos::max() (106 days). Cancelled when the thread is asked to stop
// (base/stop.h).
#pragma once

#include <algorithm>
#include <utility>

#include "base/stop.h"
#include "sim/engine/executor_state.h"

namespace spillway::sim {

struct NullSink {};

template <class Sink = NullSink>
class Executor : public ExecutorState {
 public:
  // The graph must be finished. Pass it by std::move unless it is needed again.
  explicit Executor(ActivityGraph graph, ExecutorOptions options = {}, Sink sink = {})
      : ExecutorState(std::move(graph), options), sink_(std::move(sink)) {}

  // Until every activity has ended or nothing can go on any more.
  Outcome run() { return run_until(Picos::max()); }
  // Handles every event up to and including `limit`; may be called again. now() is then `limit` if paused.
  Outcome run_until(Picos limit);

  [[nodiscard]] Sink& sink() { return sink_; }
  [[nodiscard]] const Sink& sink() const { return sink_; }

  // The following may be called before a run, between runs, or from on_instant.

  // fill(ActivityGraph&) may add activities on existing lanes and paths, and edges to activities that
  // haven't started. Sources that have already started or ended count as satisfied at that time.
  template <class Fill>
  void append(Fill&& fill) {
    const Appended before = begin_append();
    fill(own_graph());
    end_append(before);
  }
  // A blocked activity doesn't start until it was unblocked as often as it was blocked. Not yet started only.
  void block(ActivityId activity) { add_block(activity); }
  void unblock(ActivityId activity) {
    remove_block(activity);
    satisfy(index(activity), now_);
  }
  // From now on. Not for a link governed by a reservoir.
  void set_capacity(LinkId link, Rate capacity) { network_.set_capacity(link, capacity); }

 private:
  static constexpr bool watches_instants = requires(Sink & s, Executor& e) {
    s.on_instant(e, EventPhase::free, Picos{});
  };

  void handle(const EventQueue::Event& event);
  bool close_phase(Picos next_time, EventPhase next_phase);
  void start_activity(std::uint32_t a);
  void end_activity(std::uint32_t a);
  void end_flow(std::uint32_t slot);
  void resolve();

  Sink sink_;
  bool ends_seen_ = false, sample_due_ = false;
};

// What is left to do at this instant before an event at (next_time, next_phase) may be handled. Returns true
// when something was done that may have put an earlier event in front of it.
template <class Sink>
bool Executor<Sink>::close_phase(Picos next_time, EventPhase next_phase) {
  if constexpr (watches_instants) {
    if (ends_seen_ && (next_time > now_ || next_phase > EventPhase::completion)) {
      ends_seen_ = false;
      sink_.on_instant(*this, EventPhase::free, now_);
      sink_.on_instant(*this, EventPhase::allocation, now_);
      return true;
    }
  }
  if (next_time <= now_) return false;
  if (network_.dirty()) {
    resolve();
    return true;
  }
  if constexpr (watches_instants) {
    if (std::exchange(sample_due_, false)) {
      sink_.on_instant(*this, EventPhase::sampling, now_);
      return true;
    }
  }
  return false;
}

template <class Sink>
Outcome Executor<Sink>::run_until(Picos limit) {
  SPILLWAY_ASSERT(limit >= now_);
  begin();
  RunStatus status = RunStatus::paused;
  constexpr std::uint32_t between_checks = 256;
  for (std::uint32_t turn = 0;; ++turn) {
    if (turn % between_checks == 0) check_stop();
    const bool empty = queue_.empty();
    const EventQueue::Event next = empty ? EventQueue::Event{Picos::max(), 0, 0, 0} : queue_.top();
    const bool idle = empty || next.time > now_;
    if (idle || watches_instants) {
      if (close_phase(next.time, next.phase())) continue;
    }
    if (idle) {
      if (ended_ == graph_->size()) status = RunStatus::finished;
      if (empty || status == RunStatus::finished || next.time > limit) {
        if (empty && status != RunStatus::finished) status = RunStatus::stalled;
        break;
      }
      now_ = next.time;
    }
    queue_.pop();
    handle(next);
  }
  if (status == RunStatus::paused) now_ = limit;
  return conclude(status);
}

template <class Sink>
void Executor<Sink>::handle(const EventQueue::Event& event) {
  if constexpr (watches_instants) sample_due_ = true;
  switch (static_cast<EventKind>(event.kind & ~EventQueue::timer_bit)) {
    case EventKind::start:
      return start_activity(event.target);
    case EventKind::delay_end:
      return end_activity(event.target);
    case EventKind::flow_end:
      return end_flow(event.target - reservoir_timers());
    case EventKind::capacity:
      return change_capacity(event.target);
    case EventKind::reservoir:
      return advance_reservoir(event.target);
  }
}

template <class Sink>
void Executor<Sink>::start_activity(std::uint32_t a) {
  if (pending_[a] != 0 || start_[a] > now_) return;  // held again since it was scheduled
  pending_[a] = running;
  start_[a] = now_;
  note(EventKind::start, a);
  if constexpr (requires { sink_.on_start(ActivityId{a}, now_); }) sink_.on_start(ActivityId{a}, now_);
  const ActivityGraph& graph = *graph_;
  const std::uint8_t traits = graph.traits(a);
  if ((traits & ActivityGraph::on_wide_lane) != 0) wide_lane_started(a);
  if ((traits & ActivityGraph::has_start_edges) != 0) follow_edges(a, EdgeType::start_to_start);
  const std::int64_t work = graph.work(a);
  if (work == 0) return end_activity(a);
  if ((traits & ActivityGraph::is_flow) != 0) return start_flow(a);
  queue_.schedule(later(now_, Picos(work), a), EventPhase::completion, static_cast<std::uint32_t>(EventKind::delay_end),
                  a);
}

template <class Sink>
void Executor<Sink>::end_activity(std::uint32_t a) {
  if constexpr (watches_instants) ends_seen_ = true;
  pending_[a] = done;
  end_[a] = now_;
  last_end_ = now_;
  ++ended_;
  note(EventKind::delay_end, a);
  if constexpr (requires { sink_.on_end(ActivityId{a}, now_); }) sink_.on_end(ActivityId{a}, now_);
  const ActivityGraph& graph = *graph_;
  if ((graph.traits(a) & ActivityGraph::on_wide_lane) != 0) {
    wide_lane_ended(a);
  } else if (const std::uint32_t next = index(graph.lane_next(a)); next != none) {
    satisfy(next, later(now_, graph.gap(next), next));
  }
  follow_edges(a, EdgeType::end_to_start);
}

template <class Sink>
void Executor<Sink>::end_flow(std::uint32_t slot) {
  const std::uint32_t a = network_.flow(slot).owner;
  network_.finish(now_, slot);
  end_activity(a);
}

template <class Sink>
void Executor<Sink>::resolve() {
  network_.solve(now_);
  after_solve();
  if constexpr (requires { sink_.on_rate(ActivityId{}, now_, Rate{}); }) {
    for (const std::uint32_t slot : network_.changed_flows()) {
      const FluidNetwork::Flow& flow = network_.flow(slot);
      sink_.on_rate(ActivityId{flow.owner}, now_, flow.rate);
    }
  }
}

}  // namespace spillway::sim
