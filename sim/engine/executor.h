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
//
// Cost: a delay on a lane about 100-200 ns in all; a flow one or two solves of its component.
// Fork: copying an executor copies its whole state (the graph is shared).
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

 private:
  void handle(const EventQueue::Event& event);
  void start_activity(std::uint32_t a);
  void end_activity(std::uint32_t a);
  void end_flow(std::uint32_t slot);
  void resolve();

  Sink sink_;
};

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
    if (idle) {
      if (network_.dirty()) {
        resolve();  // which may put an earlier event in front of that one
        continue;
      }
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
