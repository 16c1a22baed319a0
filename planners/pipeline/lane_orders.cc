#include "planners/pipeline/lane_orders.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spillway::planners {
namespace {

constexpr std::int64_t whole = 1'000'000;
constexpr Ticks unknown = -1;
using PlanKind = PipelineOpKind;

}  // namespace

bool LaneOrders::covers(const PipelinePlan& plan) {
  if (plan.slices > 1 || plan.routes.size() > 1) return false;
  for (const auto& lane : plan.copies)
    if (!lane.empty()) return false;
  for (const auto& lane : plan.compute)
    for (const PipelineOp& op : lane)
      if (op.kind == PlanKind::paired || op.kind == PlanKind::backward) return false;
  return true;
}

LaneOrders::LaneOrders(const PipelinePlan& plan, const StageTimes& times, const std::vector<double>& limits,
                       const ActivationRules& rules)
    : lanes(plan.compute.size()), positions_(static_cast<std::size_t>(plan.positions())), rules_(rules) {
  places_ = plan.routes[0];
  const std::size_t passes = static_cast<std::size_t>(plan.micro_batches) * positions_;
  const double chunks = static_cast<double>(plan.chunks * whole);
  for (std::size_t d = 0; d < lanes.size(); ++d)
    limits_.push_back(limits.empty() ? std::numeric_limits<std::int64_t>::max()
                                     : static_cast<std::int64_t>(std::floor(limits[d] * chunks + 0.5)));
  const auto leaves = [&](std::size_t q, std::size_t other) { return places_[q].device != places_[other].device; };
  durations_.assign(positions_ * kind_count, 0);
  lags_.assign(positions_ * kind_count, 0);
  for (std::size_t q = 0; q < positions_; ++q) {
    const PassTimes& t = times.at(q);
    const Ticks ahead = q + 1 < positions_ && leaves(q, q + 1) ? times.transfer : 0;
    const Ticks behind = q > 0 && leaves(q, q - 1) ? times.transfer : 0;
    Ticks* at = &durations_[q * kind_count];
    at[forward] = t.forward + (times.blocking_transfers ? ahead : 0);
    at[input] = t.input_gradient + (times.blocking_transfers ? behind : 0);
    at[weight] = t.weight_gradient;
    at[recompute] = t.recompute;
    lags_[q * kind_count + forward] = times.blocking_transfers ? 0 : behind;
    lags_[q * kind_count + input] = times.blocking_transfers ? 0 : ahead;
  }
  recomputed.assign(passes, 0);
  inputs_.assign(passes * kind_count, none);
  waits_.assign(passes * kind_count, -1);
  ends_.assign(passes * kind_count, unknown);
  turn_.assign(passes * kind_count, 0);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const std::size_t q = pass % positions_;
    const Op op = static_cast<Op>(pass) * kind_count;
    if (q > 0) inputs_[op + forward] = op - kind_count + forward;
    inputs_[op + input] = q + 1 < positions_ ? op + kind_count + input : op + forward;
    for (const Kind kind : {forward, input})
      if (inputs_[op + kind] != none) waits_[inputs_[op + kind]] = places_[q].device;
  }
  std::vector<std::size_t> position_of(lanes.size() * static_cast<std::size_t>(plan.chunks));
  for (std::size_t q = 0; q < positions_; ++q)
    position_of[static_cast<std::size_t>(places_[q].device * plan.chunks + places_[q].chunk)] = q;
  for (std::size_t d = 0; d < lanes.size(); ++d) {
    for (const PipelineOp& op : plan.compute[d]) {
      const std::size_t q =
          position_of[d * static_cast<std::size_t>(plan.chunks) + static_cast<std::size_t>(op.pass.chunk)];
      const std::size_t pass = static_cast<std::size_t>(op.pass.micro_batch) * positions_ + q;
      const Kind kind = op.kind == PlanKind::forward          ? forward
                        : op.kind == PlanKind::input_gradient ? input
                        : op.kind == PlanKind::recompute      ? recompute
                                                              : weight;
      if (kind == recompute) recomputed[pass] = 1;
      lanes[d].push_back(static_cast<Op>(pass) * kind_count + kind);
    }
  }
}

std::int64_t LaneOrders::change(Op op) const {
  switch (kind_of(op)) {
    case forward:
      return recomputed[op / kind_count] != 0 ? rules_.checkpoint : whole;
    case recompute:
      return whole - rules_.checkpoint;
    case input:
      return rules_.weight_part - whole;
    case weight:
    case kind_count:
      return -rules_.weight_part;
  }
  return 0;
}

std::size_t LaneOrders::overflow(std::size_t device, const Lane& lane) const {
  const std::int64_t limit = limits_[device];
  std::int64_t held = 0;
  for (std::size_t i = 0; i < lane.size(); ++i)
    if ((held += change(lane[i])) > limit) return i;
  return lane.size();
}

bool LaneOrders::may_swap(Op earlier, Op later) const {
  if (earlier / kind_count == later / kind_count) return false;
  return kind_of(earlier) != kind_of(later) || position(earlier) != position(later);
}

std::optional<Ticks> LaneOrders::run() {
  std::fill(ends_.begin(), ends_.end(), unknown);
  next_.assign(lanes.size(), 0);
  clock_.assign(lanes.size(), 0);
  waiting_.assign(lanes.size(), none);
  awake_.clear();
  std::size_t open = 0;
  for (std::size_t d = lanes.size(); d-- > 0;) awake_.push_back(static_cast<std::uint32_t>(d)), open += lanes[d].size();
  while (!awake_.empty()) {
    const std::size_t device = awake_.back();
    awake_.pop_back();
    waiting_[device] = none;
    const Lane& lane = lanes[device];
    Ticks clock = clock_[device];
    std::size_t at = next_[device];
    for (; at < lane.size(); ++at) {
      const Op op = lane[at], needed = inputs_[op];
      const std::size_t index = position(op) * kind_count + kind_of(op);
      if (needed != none) {
        const Ticks end = ends_[needed];
        if (end == unknown) {
          waiting_[device] = needed;
          break;
        }
        clock = std::max(clock, end + lags_[index]);
      }
      clock += durations_[index];
      ends_[op] = clock;
      turn_[op] = static_cast<std::uint32_t>(at);
      --open;
      if (waits_[op] >= 0 && waiting_[static_cast<std::size_t>(waits_[op])] == op) {
        waiting_[static_cast<std::size_t>(waits_[op])] = none;
        awake_.push_back(static_cast<std::uint32_t>(waits_[op]));
      }
    }
    next_[device] = at;
    clock_[device] = clock;
  }
  if (open > 0) return std::nullopt;
  return *std::max_element(clock_.begin(), clock_.end());
}

void LaneOrders::write(PipelinePlan& plan) const {
  constexpr PlanKind kinds[] = {PlanKind::forward, PlanKind::input_gradient, PlanKind::weight_gradient,
                                PlanKind::recompute};
  for (std::size_t d = 0; d < lanes.size(); ++d) {
    plan.compute[d].clear();
    for (const Op op : lanes[d]) {
      PipelineOp made;
      made.pass.micro_batch = static_cast<std::int32_t>(op / kind_count / positions_);
      made.pass.chunk = static_cast<std::int16_t>(places_[position(op)].chunk);
      made.kind = kinds[kind_of(op)];
      plan.compute[d].push_back(made);
    }
  }
}

}  // namespace spillway::planners
