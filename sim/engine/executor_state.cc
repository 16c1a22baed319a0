#include "sim/engine/executor_state.h"

#include "base/input_error.h"

namespace spillway::sim {

ExecutorState::ExecutorState(ActivityGraph graph, const ExecutorOptions& options)
    : graph_(std::make_shared<ActivityGraph>(std::move(graph))),
      queue_(options.tie_order),
      network_(graph_->network()) {
  const ActivityGraph& g = *graph_;
  SPILLWAY_ASSERT(g.finished());
  link_reservoir_.assign(g.link_count(), none);
  for (const ReservoirSpec& spec : g.reservoirs()) {
    SPILLWAY_ASSERT(link_reservoir_[index(spec.link)] == none);
    link_reservoir_[index(spec.link)] = reservoir_timers();
    reservoirs_.emplace_back(spec);
    network_.set_capacity(spec.link, reservoirs_.back().capacity());
  }
  queue_.set_timer_count(reservoir_timers());

  const std::uint32_t count = g.size();
  pending_.assign(count, 1);  // 1: begin() itself
  start_.assign(count, Picos{});
  end_.assign(count, Picos{});
  for (std::uint32_t a = 0; a < count; ++a) {
    start_[a] = g.release(a);
    for (const ActivityGraph::Edge& edge : g.edges(a)) ++pending_[edge.target];
    const std::uint32_t next = index(g.lane_next(a));
    if ((g.traits(a) & ActivityGraph::on_wide_lane) != 0) {
      ++pending_[a];
    } else if (next != none) {
      ++pending_[next];
    }
  }
  lanes_.resize(g.lane_count());
  for (std::uint32_t lane = 0; lane < g.lane_count(); ++lane) lanes_[lane].head = index(g.lane_first(TrackId{lane}));
}

void ExecutorState::begin() {
  if (begun_) return;
  begun_ = true;
  const auto& changes = graph_->capacity_changes();
  for (std::uint32_t row = 0; row < changes.size(); ++row) {
    SPILLWAY_ASSERT(link_reservoir_[index(changes[row].link)] == none);
    queue_.schedule(changes[row].at, EventPhase::completion, static_cast<std::uint32_t>(EventKind::capacity), row);
  }
  for (std::uint32_t r = 0; r < reservoir_timers(); ++r) rearm_reservoir(r);
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
    if (graph_->lane_width(TrackId{lane}) > 1) grant(lane);
  for (std::uint32_t a = 0; a < pending_.size(); ++a) satisfy(a, start_[a]);
}

Outcome ExecutorState::conclude(RunStatus status) {
  Outcome outcome;
  outcome.status = status;
  if (status == RunStatus::stalled) diagnose(outcome);
  outcome.end_time = last_end_;
  outcome.events = events_;
  outcome.ended = ended_;
  outcome.event_digest = events_digest_.value();
  outcome.fingerprint = fingerprint(lane_digests());
  return outcome;
}

void ExecutorState::start_flow(std::uint32_t a) {
  const ActivityGraph::FlowSpec& flow = graph_->flow(a);
  const std::uint32_t before = network_.slot_count();
  network_.start(now_, graph_->work(a), flow.path, flow.cap, flow.weight, a);
  if (network_.slot_count() != before) queue_.set_timer_count(reservoir_timers() + network_.slot_count());
}

void ExecutorState::after_solve() {
  const std::uint32_t base = reservoir_timers();
  for (const std::uint32_t slot : network_.changed_flows())
    if (queue_.armed_at(base + slot) != network_.flow(slot).end) queue_.disarm(base + slot);
  for (const std::uint32_t slot : network_.earliest()) {
    const Picos end = network_.flow(slot).end;
    if (queue_.armed_at(base + slot) == end) continue;
    queue_.arm(base + slot, end, EventPhase::completion, static_cast<std::uint32_t>(EventKind::flow_end));
  }
  if (base == 0) return;
  for (const std::uint32_t link : network_.solved_links()) {
    const std::uint32_t r = link_reservoir_[link];
    if (r == none) continue;
    reservoirs_[r].set_inflow(now_, network_.scaled_consumption(LinkId{link}));
    rearm_reservoir(r);
  }
}

void ExecutorState::rearm_reservoir(std::uint32_t r) {
  const Picos due = reservoirs_[r].next_event();
  if (due == queue_.armed_at(r)) return;
  queue_.disarm(r);
  if (due != Picos::max()) queue_.arm(r, due, EventPhase::completion, static_cast<std::uint32_t>(EventKind::reservoir));
}

void ExecutorState::advance_reservoir(std::uint32_t r) {
  note(EventKind::reservoir, r);
  if (reservoirs_[r].advance(now_)) network_.set_capacity(reservoirs_[r].spec().link, reservoirs_[r].capacity());
  rearm_reservoir(r);
}

void ExecutorState::change_capacity(std::uint32_t row) {
  note(EventKind::capacity, row);
  const CapacityChange& change = graph_->capacity_changes()[row];
  network_.set_capacity(change.link, change.capacity);
}

// A wide lane lets its head go while a slot is free; the head keeps the lane's order.
void ExecutorState::grant(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.head == none || state.granted || state.active >= graph_->lane_width(TrackId{lane})) return;
  state.granted = true;
  const std::uint32_t a = state.head;
  satisfy(a, state.slot_used ? later(state.slot_free, graph_->gap(a), a) : Picos{});
}

void ExecutorState::wide_lane_started(std::uint32_t a) {
  const std::uint32_t lane = index(graph_->lane(a));
  lanes_[lane].granted = false;
  ++lanes_[lane].active;
  lanes_[lane].head = index(graph_->lane_next(a));
  grant(lane);
}

void ExecutorState::wide_lane_ended(std::uint32_t a) {
  const std::uint32_t lane = index(graph_->lane(a));
  --lanes_[lane].active;
  lanes_[lane].slot_free = now_;
  lanes_[lane].slot_used = true;
  grant(lane);
}

void ExecutorState::end_of_time(std::uint32_t a) {
  throw InputError("", "activity " + std::to_string(a),
                   "it would begin or end after the end of simulated time (106 days)",
                   "check durations, lags and release times");
}

}  // namespace spillway::sim
