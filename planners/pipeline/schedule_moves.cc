#include "planners/pipeline/schedule_moves.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "models/pipeline/pipeline_check.h"
#include "planners/pipeline/lane_orders.h"
#include "planners/pipeline/pipeline_executor.h"

namespace spillway::planners {
namespace {

using Op = LaneOrders::Op;
using Lane = LaneOrders::Lane;

// Of the makespan: how much longer an order may be that is still kept one time in e, at the beginning.
constexpr double first_temperature = 0.002;
constexpr int most_repairs = 6;

class Annealing {
 public:
  Annealing(const PipelinePlan& plan, const MoveRequest& request)
      : orders_(plan, request.times, request.limits, request.rules), request_(request), random_(request.seed) {}

  // Whether the plan's makespan was beaten; the lanes are the shortest ones then.
  bool run(PipelinePlan& plan) {
    const std::optional<Ticks> start = orders_.run();
    if (!start || !keeps_within_limits()) return false;
    now_ = best_ = *start;
    best_lanes_ = orders_.lanes;
    find_path();
    for (std::int64_t i = 0; i < request_.moves; ++i) {
      if (i % 256 == 0 && request_.progress && !request_.progress()) break;
      const double left = 1 - static_cast<double>(i) / static_cast<double>(request_.moves);
      temperature_ = first_temperature * static_cast<double>(best_) * left * left;
      if (i % 512 == 511 && orders_.run()) find_path();  // another of several longest ones
      attempt();
    }
    if (best_ >= *start) return false;
    orders_.lanes = best_lanes_;
    orders_.write(plan);
    return true;
  }

 private:
  std::size_t draw(std::size_t below) { return static_cast<std::size_t>(random_() % below); }
  bool chance(double probability) { return static_cast<double>(random_() >> 11U) * 0x1p-53 < probability; }

  [[nodiscard]] bool keeps_within_limits() const {
    for (std::size_t d = 0; d < orders_.devices(); ++d)
      if (orders_.overflow(d, orders_.lanes[d]) < orders_.lanes[d].size()) return false;
    return true;
  }

  void attempt() {
    const std::size_t pick = draw(16);
    if (pick == 0) {
      device_ = draw(orders_.devices());
      if (orders_.lanes[device_].size() < 2) return;
      begin_change();
      const std::size_t from = draw(lane().size());
      const std::size_t steps = 1 + draw(8);
      if (!shift(from, draw(2) == 0 ? from - std::min(from, steps) : std::min(from + steps, lane().size() - 1)))
        return undo();
    } else if (pick == 1) {
      device_ = draw(orders_.devices());
      begin_change();
      if (!take_out_recomputation()) return undo();
    } else {
      const LaneOrders::Block block = blocks_[draw(blocks_.size())];
      if (block.last == block.first && block.first == 0) return;
      device_ = block.device;
      if (block.last >= orders_.lanes[device_].size()) return;  // shorter since
      begin_change();
      if (!move_in(block)) return undo();
    }
    decide();
  }

  // Precondition: the lanes are those of the last run.
  void find_path() {
    orders_.longest_path([this] { return draw(2) == 0; }, blocks_);
  }

  void begin_change() {
    saved_ = orders_.lanes[device_];
    marked_.clear();
  }
  void undo() {
    orders_.lanes[device_].swap(saved_);
    for (const std::size_t pass : marked_) orders_.recomputed[pass] ^= 1;
  }
  void mark(std::size_t pass) {
    orders_.recomputed[pass] ^= 1;
    marked_.push_back(pass);
  }
  Lane& lane() { return orders_.lanes[device_]; }

  // As far as passes may go; false if that is nowhere.
  bool shift(std::size_t from, std::size_t to) {
    Lane& ops = lane();
    std::size_t at = from;
    while (at > to && orders_.may_swap(ops[at - 1], ops[at])) std::swap(ops[at - 1], ops[at]), --at;
    while (at < to && orders_.may_swap(ops[at], ops[at + 1])) std::swap(ops[at], ops[at + 1]), ++at;
    return at != from;
  }

  // To the front, to the back, one step, or into the pause before.
  bool move_in(const LaneOrders::Block& block) {
    const std::size_t from = block.first + draw(block.last - block.first + 1);
    switch (draw(4)) {
      case 0:
        return shift(from, block.first);
      case 1:
        return shift(from, block.last);
      case 2:
        return shift(from, from > 0 && draw(2) == 0 ? from - 1 : std::min(from + 1, lane().size() - 1));
      default:
        return shift(from, block.first - std::min(block.first, draw(6)));
    }
  }

  bool take_out_recomputation() {
    Lane& ops = lane();
    if (ops.empty()) return false;
    const std::size_t start = draw(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const std::size_t at = (start + i) % ops.size();
      if (LaneOrders::kind_of(ops[at]) != LaneOrders::recompute) continue;
      mark(ops[at] / LaneOrders::kind_count);
      ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    return false;
  }

  // Until the device holds no more than it may.
  bool repair() {
    for (int i = 0; i < most_repairs; ++i) {
      const std::size_t at = orders_.overflow(device_, lane());
      if (at == lane().size()) return true;
      const bool prefers_weights = draw(4) != 0;
      if (prefers_weights ? !(pull_weights(at) || recompute_over(at)) : !(recompute_over(at) || pull_weights(at)))
        return false;
    }
    return false;
  }

  // The next weight gradient that could run before the operation at `at`.
  bool pull_weights(std::size_t at) {
    Lane& ops = lane();
    for (std::size_t i = at + 1; i < ops.size(); ++i) {
      if (LaneOrders::kind_of(ops[i]) != LaneOrders::weight) continue;
      std::size_t j = i;
      while (j > at && orders_.may_swap(ops[j - 1], ops[i])) --j;
      if (j > at) continue;
      std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(at), ops.begin() + static_cast<std::ptrdiff_t>(i),
                  ops.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return true;
    }
    return false;
  }

  // Of the forwards up to `at` whose backward comes later, the one that waits longest for it.
  bool recompute_over(std::size_t at) {
    if (!request_.recompute) return false;
    Lane& ops = lane();
    for (std::size_t i = ops.size(); i-- > at + 1;) {
      if (LaneOrders::kind_of(ops[i]) != LaneOrders::input) continue;
      const std::size_t pass = ops[i] / LaneOrders::kind_count;
      if (orders_.recomputed[pass] != 0) continue;
      const Op forward = LaneOrders::sibling(ops[i], LaneOrders::forward);
      if (std::find(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(at) + 1, forward) ==
          ops.begin() + static_cast<std::ptrdiff_t>(at) + 1)
        continue;
      ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(i), LaneOrders::sibling(forward, LaneOrders::recompute));
      mark(pass);
      return true;
    }
    return false;
  }

  void decide() {
    if (!repair()) return undo();
    const std::optional<Ticks> after = orders_.run();
    if (!after) return undo();
    const auto longer = static_cast<double>(*after - now_);
    if (longer > 0 && !chance(std::exp(-longer / std::max(temperature_, 1e-9)))) return undo();
    now_ = *after;
    find_path();
    if (now_ < best_) {
      best_ = now_;
      best_lanes_ = orders_.lanes;
    }
  }

  LaneOrders orders_;
  const MoveRequest& request_;
  std::mt19937_64 random_;
  double temperature_ = 0;
  Ticks now_ = 0, best_ = 0;
  std::vector<Lane> best_lanes_;
  std::vector<LaneOrders::Block> blocks_;
  std::size_t device_ = 0;           // of the change under way
  Lane saved_;                       // its lane before
  std::vector<std::size_t> marked_;  // passes whose recomputation it changed
};

}  // namespace

void split_backwards(PipelinePlan& plan) {
  using Kind = PipelineOpKind;
  for (auto& lane : plan.compute) {
    std::vector<PipelineOp> split;
    split.reserve(lane.size() * 3 / 2);
    for (PipelineOp op : lane) {
      if (op.kind != Kind::backward) {
        split.push_back(op);
        continue;
      }
      op.kind = Kind::input_gradient;
      split.push_back(op);
      op.kind = Kind::weight_gradient;
      op.after = -1;
      split.push_back(op);
    }
    lane = std::move(split);
  }
}

Ticks improve_plan(PipelinePlan& plan, const MoveRequest& request) {
  if (LaneOrders::covers(plan) && Annealing(plan, request).run(plan)) check_plan(plan);
  return execute_plan(plan, request.times).makespan;
}

}  // namespace spillway::planners
