// Buffers of a made-up training step, for measuring the layout solver at any size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/floors.h"
#include "base/splitmix64.h"
#include "planners/layout/layout_solver.h"

namespace spillway::bench {

// Four fifths are activations: born one after the other in the forward pass of a micro-batch, dead in reverse order in
// its backward pass, a few ticks early or late. One fifth are temporaries of up to 16 ticks, anywhere. Sizes are
// log-uniform from 512 B to 256 MiB in steps of 512 B. With several micro-batches, the forward pass of the next begins
// where the backward pass of the one before is half done, so that lives of two are interleaved.
inline std::vector<LayoutBuffer> training_step(std::int64_t count, std::uint64_t seed, std::int64_t micro_batches = 1) {
  SplitMix64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(n));
  };
  const std::int64_t activations = count * 4 / 5 / micro_batches;
  const std::int64_t stride = micro_batches == 1 ? 2 * activations : activations + activations / 2;
  const std::int64_t end = stride * (micro_batches - 1) + 2 * activations;
  std::vector<LayoutBuffer> buffers;
  for (std::int64_t i = 0; i < count; ++i) {
    LayoutBuffer buffer;
    const double steps = std::exp2(19.0 * random.uniform());  // 1 to 2^19 times 512 B
    buffer.size = 512 * static_cast<std::int64_t>(steps);
    const std::int64_t batch = i / activations, index = i % activations;
    if (batch < micro_batches) {
      buffer.lower = batch * stride + index;
      buffer.upper = std::max(buffer.lower + 1, batch * stride + 2 * activations - index + below(9) - 4);
    } else {
      buffer.lower = below(end);
      buffer.upper = buffer.lower + 1 + below(16);
    }
    buffers.push_back(buffer);
  }
  return buffers;
}

}  // namespace spillway::bench
