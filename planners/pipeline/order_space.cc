#include "planners/pipeline/order_space.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace spillway::planners {
namespace {

constexpr std::int64_t whole_share = 1'000'000;
constexpr Ticks never = std::numeric_limits<Ticks>::max();

}  // namespace

OrderSpace::OrderSpace(const PipelinePlan& plan, const StageTimes& times, std::vector<std::int64_t> limits,
                       std::int64_t weight_part)
    : devices_(static_cast<std::size_t>(plan.devices)),
      positions_(static_cast<std::size_t>(plan.positions())),
      micro_batches_(static_cast<std::size_t>(plan.micro_batches)),
      weight_part_(weight_part),
      limits_(std::move(limits)) {
  for (std::size_t q = 0; q < positions_; ++q) {
    const PipelinePlan::Place place = plan.routes[0][q];
    device_.push_back(static_cast<std::size_t>(place.device));
    chunk_.push_back(place.chunk);
    const PassTimes& t = times.at(q);
    durations_.insert(durations_.end(), {t.forward, t.input_gradient, t.weight_gradient});
    lag_.push_back(q + 1 < positions_ && plan.routes[0][q + 1].device != place.device ? times.transfer : 0);
  }
  forward_chain_.resize(positions_);
  backward_chain_.resize(positions_);
  round_trip_.resize(positions_);
  Ticks way_back = duration(0, weight);  // after the backward at q, with the transfer to q - 1
  for (std::size_t q = 0; q < positions_; ++q) {
    if (q > 0) way_back += lag_[q - 1];
    backward_chain_[q] = duration(q, input) + std::max(way_back, duration(q, weight));
    way_back = backward_chain_[q];
  }
  Ticks turn = 0;  // from the forward's end at q to the backward's start there
  for (std::size_t q = positions_; q-- > 0;) {
    if (q + 1 < positions_) turn += 2 * lag_[q] + duration(q + 1, forward) + duration(q + 1, input);
    forward_chain_[q] = duration(q, forward) + turn + backward_chain_[q];
    round_trip_[q] = duration(q, forward) + turn + duration(q, input);
    if (weight_part_ == whole_share) round_trip_[q] += duration(q, weight);
  }
  shortest_tail_.assign(devices_, never);
  for (std::size_t q = 0; q < positions_; ++q)
    shortest_tail_[device_[q]] = std::min(shortest_tail_[device_[q]], backward_chain_[q] - duration(q, input));
}

OrderSpace::State OrderSpace::root() const {
  State state;
  state.done.assign(positions_ * kind_count, 0);
  state.clock.assign(devices_, 0);
  state.held.assign(devices_, 0);
  state.ends.resize(positions_ * 2);
  for (auto& ends : state.ends) ends.reserve(micro_batches_);
  return state;
}

std::int64_t OrderSpace::change(Kind kind) const {
  return kind == forward ? whole_share : kind == input ? weight_part_ - whole_share : -weight_part_;
}

bool OrderSpace::candidate(const State& state, std::size_t q, Kind kind, Choice& out) const {
  const auto turn = static_cast<std::size_t>(state.done[slot(q, kind)]);
  if (turn == micro_batches_) return false;
  const std::size_t device = device_[q];
  Ticks ready = state.clock[device];
  const auto wait = [&](std::size_t position, Kind input_kind, Ticks lag) {
    const auto& ends = state.ends[position * 2 + input_kind];
    if (ends.size() <= turn) return false;
    ready = std::max(ready, ends[turn] + lag);
    return true;
  };
  if (kind == forward) {
    if (q > 0 && !wait(q - 1, forward, lag_[q - 1])) return false;
    if (state.held[device] + whole_share > limits_[device]) return false;
  } else if (kind == input) {
    if (static_cast<std::size_t>(state.done[slot(q, forward)]) <= turn) return false;
    if (q + 1 < positions_ ? !wait(q + 1, input, lag_[q]) : !wait(q, forward, 0)) return false;
  } else if (static_cast<std::size_t>(state.done[slot(q, input)]) <= turn) {
    return false;
  }
  out = {q, kind, ready, ready + duration(q, kind)};
  return true;
}

void OrderSpace::choices(const State& state, std::vector<Choice>& out) const {
  out.clear();
  Ticks first_end = never;
  std::size_t device = 0;
  Choice choice;
  for (std::size_t q = 0; q < positions_; ++q) {
    for (const Kind kind : {input, forward, weight}) {
      if (!candidate(state, q, kind, choice)) continue;
      out.push_back(choice);
      if (choice.end < first_end) first_end = choice.end, device = device_[q];
    }
  }
  std::erase_if(out, [&](const Choice& each) {
    return device_[each.position] != device || (each.start >= first_end && each.end != first_end);
  });
}

void OrderSpace::take(State& state, const Choice& choice) const {
  const std::size_t device = device_[choice.position];
  ++state.done[slot(choice.position, choice.kind)];
  ++state.decided;
  state.clock[device] = choice.end;
  state.held[device] += change(choice.kind);
  if (choice.kind != weight) state.ends[choice.position * 2 + choice.kind].push_back(choice.end);
}

Ticks OrderSpace::bound_after(State& state, const Choice& choice) const {
  const std::size_t device = device_[choice.position];
  const Ticks clock = state.clock[device];
  take(state, choice);
  const Ticks found = bound(state);
  --state.done[slot(choice.position, choice.kind)];
  --state.decided;
  state.clock[device] = clock;
  state.held[device] -= change(choice.kind);
  if (choice.kind != weight) state.ends[choice.position * 2 + choice.kind].pop_back();
  return found;
}

// With one chunk per device, the forward `room` places on waits for the activations of this one: whole round trips.
Ticks OrderSpace::memory_bound(const State& state, std::size_t q, Ticks first) const {
  const std::int64_t room = limits_[device_[q]] / whole_share;
  const std::int64_t left = static_cast<std::int64_t>(micro_batches_) - state.done[slot(q, forward)];
  if (positions_ != devices_ || room < 1 || left < 1) return 0;
  return first + (left - 1) / room * round_trip_[q] + forward_chain_[q];
}

// With one chunk per device: what a device can do until its next backward's input comes is limited, by memory and by
// the backwards whose weight gradients are left; all the rest comes after.
Ticks OrderSpace::backward_bound(const State& state, const std::vector<Ticks>& forward_ends,
                                 const std::vector<Ticks>& rest) const {
  Ticks best = 0, next_end = 0;  // of the next backward one position later
  for (std::size_t q = positions_; q-- > 0;) {
    const std::size_t d = device_[q];
    const auto turn = static_cast<std::size_t>(state.done[slot(q, input)]);
    if (turn == micro_batches_) continue;
    const bool is_last = q + 1 == positions_;
    const auto& ends = is_last ? state.ends[q * 2 + forward] : state.ends[(q + 1) * 2 + input];
    const Ticks unknown_end = is_last ? forward_ends[q] : next_end;
    const Ticks arrival = (turn < ends.size() ? ends[turn] : unknown_end) + (is_last ? 0 : lag_[q]);
    const Ticks start = std::max(state.clock[d], arrival);
    next_end = start + duration(q, input);
    const std::int64_t pending = state.done[slot(q, input)] - state.done[slot(q, weight)];
    const std::int64_t room = (limits_[d] - state.held[d] + pending * weight_part_) / whole_share;
    const std::int64_t left = static_cast<std::int64_t>(micro_batches_) - state.done[slot(q, forward)];
    const Ticks before = std::min(room, left) * duration(q, forward) + pending * duration(q, weight);
    best = std::max(best, start + std::max<Ticks>(0, rest[d] - before));
  }
  return best;
}

Ticks OrderSpace::bound(const State& state) const {
  Ticks best = 0;
  thread_local std::vector<Ticks> rest, backwards, arrival;
  rest.assign(devices_, 0);
  backwards.assign(devices_, 0);  // the part of it that comes before the last backward's end
  arrival.assign(positions_, 0);  // earliest end of the next forward
  const auto left = [&](std::size_t q, Kind kind) {
    return static_cast<Ticks>(micro_batches_) - state.done[slot(q, kind)];
  };
  for (std::size_t q = 0; q < positions_; ++q) {
    const std::size_t d = device_[q];
    const Ticks compute = left(q, forward) * duration(q, forward) + left(q, input) * duration(q, input);
    rest[d] += compute + left(q, weight) * duration(q, weight);
    backwards[d] += compute;
    if (left(q, forward) > 0) {
      Ticks start = state.clock[d];
      if (q > 0) {
        const auto& ends = state.ends[(q - 1) * 2 + forward];
        const auto turn = static_cast<std::size_t>(state.done[slot(q, forward)]);
        start = std::max(start, (turn < ends.size() ? ends[turn] : arrival[q - 1]) + lag_[q - 1]);
      }
      arrival[q] = start + duration(q, forward);
      best = std::max(best, start + (left(q, forward) - 1) * duration(q, forward) + forward_chain_[q]);
      best = std::max(best, memory_bound(state, q, start));
    }
    if (left(q, input) > 0)
      best = std::max(best, state.clock[d] + (left(q, input) - 1) * duration(q, input) + backward_chain_[q]);
  }
  for (std::size_t d = 0; d < devices_; ++d) {
    best = std::max(best, state.clock[d] + rest[d]);
    if (backwards[d] > 0) best = std::max(best, state.clock[d] + backwards[d] + shortest_tail_[d]);
  }
  return positions_ == devices_ ? std::max(best, backward_bound(state, arrival, rest)) : best;
}

Ticks OrderSpace::idle(const State& state) const {
  Ticks total = 0;
  for (const Ticks clock : state.clock) total += clock;
  for (std::size_t i = 0; i < state.done.size(); ++i) total -= state.done[i] * durations_[i];
  return total;
}

}  // namespace spillway::planners
