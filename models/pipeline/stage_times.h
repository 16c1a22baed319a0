// StageTimes: how long the passes of a pipeline last, in whole ticks of whatever the caller counts in.
//
// Given per model position (chunk); passes of plans with k slices last 1 / k of it, rounded down. A transfer delays
// what waits for it on another device; it takes no time on either, unless `blocking_transfers`.
#pragma once

#include <cstdint>
#include <vector>

namespace spillway::models {

using Ticks = std::int64_t;

struct PassTimes {
  Ticks forward = 0, input_gradient = 0, weight_gradient = 0, recompute = 0;  // >= 0
  [[nodiscard]] Ticks backward() const { return input_gradient + weight_gradient; }
};

struct StageTimes {
  std::vector<PassTimes> positions;  // one for all, or one per position
  Ticks transfer = 0;                // between two devices
  Ticks paired = -1;                 // a forward and a backward overlapped; -1: one after the other
  Ticks offload = 0, reload = 0;     // of one chunk's activations of a whole micro-batch
  bool blocking_transfers = false;   // the sender's compute lane waits until the transfer is done

  [[nodiscard]] const PassTimes& at(std::size_t position) const {
    return positions[positions.size() == 1 ? 0 : position];
  }
};

}  // namespace spillway::models
