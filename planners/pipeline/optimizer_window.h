// Chronos-Offload: gradients, optimizer states and weights of the deep chunks stay on the host. They move in the time
// in which a device has done a chunk's last backward and not yet begun its next step's first forward.
//
//   step    ... B7.1 | B6.0 B7.0 ...      end | F0.0 F1.0 ... F0.1 ...   next step
//                    |<-------- tail -------->|<----- head ----->|
//
// Deep chunks have the widest windows: they are updated first and used last. Chunk c of device d in the looped
// placement has a tail of (c p + d) t_b and a head of (c p + d) t_f, at equal chunk times.
//
// A chunk moves in `pieces` (layers): gradients out, the update, weights in, each piece's stages one after another.
// Each direction and the optimizer take one piece at a time; chunks go in the order in which their gradients are done.
// With the optimizer on the GPU, its states come in before the update and go out behind it instead, and the weights
// wait for the update alone. Nobody else uses the links: where GPUs share one, give the times of the share. Source: the
// abstract of ChronosPipe (Lin et al. 2025); which tensors move when is our reconstruction.
#pragma once

#include <cstdint>
#include <vector>

#include "planners/pipeline/pipeline_executor.h"

namespace spillway::planners {

enum class OptimizerPlace : std::uint8_t { host, device };

struct OffloadedOptimizer {
  std::int64_t chunks = 0;  // per device, deepest first; 0 .. the plan's
  OptimizerPlace place = OptimizerPlace::host;
  Ticks out = 0, in = 0, update = 0;  // of one chunk
  std::int64_t pieces = 1;            // >= 1
};

struct OptimizerWindow {
  std::int32_t device = 0, chunk = 0;
  Ticks tail = 0, head = 0;
  Ticks ready = 0;    // after the chunk's last backward: when its weights can be used again
  Ticks exposed = 0;  // how much later than the window's end that is
};

struct WindowReport {
  std::vector<OptimizerWindow> windows;  // by device, deepest chunk first
  Ticks exposed = 0;                     // of the worst one: how much later the next step ends at most
};

// Precondition: one route. O(operations + windows x pieces).
WindowReport optimizer_windows(const PipelinePlan& plan, const PipelineTimeline& timeline,
                               const OffloadedOptimizer& optimizer);

}  // namespace spillway::planners
