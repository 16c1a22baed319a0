// The compute lanes of a plan as flat arrays: to change orders and run them many times.
//
// Plans of one route and one slice, without copies or pairs; backwards split into B and W. An operation is a number,
// 4 x pass + kind, passes dense by micro-batch and position. Times are those of pipeline_executor.h; memory depends on
// a lane's order alone and counts as in pipeline_memory.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway::planners {

class LaneOrders {
 public:
  using Op = std::uint32_t;
  enum Kind : Op { forward, input, weight, recompute, kind_count };
  using Lane = std::vector<Op>;

  // Some of a lane that lies on the longest path: places first .. last, both in it.
  struct Block {
    std::size_t device = 0, first = 0, last = 0;
  };

  static bool covers(const PipelinePlan& plan);
  // Precondition: covers(plan). `limits`: micro-batches of a device's share, by device; empty: none.
  LaneOrders(const PipelinePlan& plan, const StageTimes& times, const std::vector<double>& limits,
             const ActivationRules& rules);

  // Runs the lanes. Nothing if they deadlock. O(operations).
  std::optional<Ticks> run();
  // Longest path of the last run, the end first; `pick` decides between equally late inputs.
  template <class Pick>
  void longest_path(Pick&& pick, std::vector<Block>& blocks) const;

  // The first place of the lane at which the device holds more than it may; the lane's size if none.
  [[nodiscard]] std::size_t overflow(std::size_t device, const Lane& lane) const;
  // May `later` run right before `earlier`, which it follows? Not within a pass, nor passes of a kind at one position.
  [[nodiscard]] bool may_swap(Op earlier, Op later) const;

  [[nodiscard]] std::size_t devices() const { return lanes.size(); }
  static Kind kind_of(Op op) { return static_cast<Kind>(op % kind_count); }
  static Op sibling(Op op, Kind kind) { return op - op % kind_count + kind; }
  // The lanes as the plan's.
  void write(PipelinePlan& plan) const;

  std::vector<Lane> lanes;       // by device
  std::vector<char> recomputed;  // by pass, as op / kind_count

 private:
  [[nodiscard]] std::size_t position(Op op) const { return op / kind_count % positions_; }
  [[nodiscard]] std::int64_t change(Op op) const;  // what it takes at its start or gives back at its end
  static constexpr Op none = 0xFFFFFFFFu;

  std::size_t positions_;
  std::vector<PipelinePlan::Place> places_;  // by position
  std::vector<std::int64_t> limits_;         // by device, millionths of a chunk's activations
  ActivationRules rules_;
  std::vector<Ticks> durations_, lags_;  // by position and kind; lag of the input
  std::vector<Op> inputs_;               // by operation; none: nothing but its lane
  std::vector<std::int32_t> waits_;      // by operation: device that takes its result, or -1
  std::vector<Ticks> ends_;              // by operation
  std::vector<std::uint32_t> turn_;      // by operation: place in its lane
  std::vector<std::size_t> next_;        // by device
  std::vector<Ticks> clock_;             // by device
  std::vector<Op> waiting_;              // by device
  std::vector<std::uint32_t> awake_;
};

template <class Pick>
void LaneOrders::longest_path(Pick&& pick, std::vector<Block>& blocks) const {
  blocks.clear();
  std::size_t device = 0;
  for (std::size_t d = 1; d < lanes.size(); ++d)
    if (clock_[d] > clock_[device]) device = d;
  if (lanes[device].empty()) return;
  std::size_t at = lanes[device].size() - 1;
  blocks.push_back({device, at, at});
  while (true) {
    const Op op = lanes[device][at];
    const std::size_t index = position(op) * kind_count + kind_of(op);
    const Ticks start = ends_[op] - durations_[index];
    const bool by_lane = at > 0 && ends_[lanes[device][at - 1]] == start;
    const bool by_input = inputs_[op] != none && ends_[inputs_[op]] + lags_[index] == start;
    if (!by_lane && !by_input) return;
    if (by_lane && (!by_input || pick())) {
      blocks.back().first = --at;
      continue;
    }
    device = static_cast<std::size_t>(places_[position(inputs_[op])].device);
    at = turn_[inputs_[op]];
    blocks.push_back({device, at, at});
  }
}

}  // namespace spillway::planners
