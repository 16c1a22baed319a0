// All orders of a pipeline's passes that are worth looking at, one decision after another.
//
// Micro-batches are alike, so each position can take them first come, first served: forwards, backwards and weight
// gradients each. The k-th pass of a kind needs k of its inputs, whatever their numbers. Each device only decides how
// it interleaves the kinds of its positions. Decisions follow Giffler & Thompson (1960): of all passes that could be
// next, take the one that could end first. On its device, any pass that could start before that end may be the next
// one. One of these orders is a shortest of all: whatever else is decided first can move earlier.
//
// Backwards are split into B and W. Memory counts as in pipeline_memory.h and limits which pass may be next.
#pragma once

#include <cstdint>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway::planners {

class OrderSpace {
 public:
  enum Kind : std::uint8_t { forward, input, weight, kind_count };
  struct Choice {
    std::size_t position = 0;
    Kind kind = forward;
    Ticks start = 0, end = 0;
  };
  struct State {
    std::vector<std::int32_t> done;        // by position and kind
    std::vector<Ticks> clock;              // by device
    std::vector<std::int64_t> held;        // by device, in millionths of a chunk's activations
    std::vector<std::vector<Ticks>> ends;  // by position and kind but W: when each micro-batch's pass ended
    std::size_t decided = 0;
  };

  // `plan`: one route, one slice, empty lanes. `limits`: by device, in millionths of a chunk's activations.
  OrderSpace(const PipelinePlan& plan, const StageTimes& times, std::vector<std::int64_t> limits,
             std::int64_t weight_part);

  [[nodiscard]] State root() const;
  [[nodiscard]] std::size_t decisions() const { return 3 * positions_ * micro_batches_; }
  // Nothing when no pass can be next although some are left: memory has run full.
  void choices(const State& state, std::vector<Choice>& out) const;
  void take(State& state, const Choice& choice) const;
  // No order that begins like this one ends earlier. O(positions).
  [[nodiscard]] Ticks bound(const State& state) const;
  // The bound of `state` with `choice` taken, without taking it.
  [[nodiscard]] Ticks bound_after(State& state, const Choice& choice) const;
  [[nodiscard]] Ticks idle(const State& state) const;  // of all devices up to their clocks

  [[nodiscard]] std::size_t positions() const { return positions_; }
  [[nodiscard]] std::size_t device_of(std::size_t position) const { return device_[position]; }
  [[nodiscard]] Ticks lag(std::size_t position) const { return lag_[position]; }  // of its results to the next one
  [[nodiscard]] std::int32_t chunk_of(std::size_t position) const { return chunk_[position]; }
  static std::size_t slot(std::size_t position, Kind kind) { return position * kind_count + kind; }

 private:
  [[nodiscard]] Ticks duration(std::size_t position, Kind kind) const { return durations_[slot(position, kind)]; }
  [[nodiscard]] std::int64_t change(Kind kind) const;
  bool candidate(const State& state, std::size_t position, Kind kind, Choice& out) const;
  [[nodiscard]] Ticks memory_bound(const State& state, std::size_t position, Ticks first) const;
  [[nodiscard]] Ticks backward_bound(const State& state, const std::vector<Ticks>& forward_ends,
                                     const std::vector<Ticks>& rest) const;

  std::size_t devices_, positions_, micro_batches_;
  std::int64_t weight_part_;
  std::vector<std::int64_t> limits_;
  std::vector<std::size_t> device_;
  std::vector<std::int32_t> chunk_;
  std::vector<Ticks> durations_;       // by position and kind
  std::vector<Ticks> lag_;             // from position to the next one
  std::vector<Ticks> forward_chain_;   // from a forward's start to the whole micro-batch's end
  std::vector<Ticks> backward_chain_;  // from a backward's start to the same
  std::vector<Ticks> round_trip_;      // from a forward's start to its activations' end
  std::vector<Ticks> shortest_tail_;   // by device: after its last backward
};

}  // namespace spillway::planners
