// PipelinePlan: which device runs which pass of which micro-batch in what order, as data without times.
//
//   device 0   F0 F1 F2 F3 B0 F4 B1 ...       its compute lane
//              ......O0 ... L0 ...            its copy lane: offloads and reloads of activations
//
// The model is cut into *positions* 0 .. devices * chunks - 1. A *route* says which device holds each position, and as
// which of its chunks; most plans have one, bidirectional ones two, opposite to each other, each with its own weights.
// Every micro-batch follows one route.
//
// Dependencies are not listed, they follow from the route (planners/pipeline/pipeline_executor.h):
//   F at a position     after F of the same micro-batch one position earlier, plus the transfer between devices
//   B at a position     after B one position later, plus the transfer; at the last position after its F
//   W, R, O, L          after B, after F, after F, after O of the same pass on the same device
// and each lane runs in order. `after` adds one more per operation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/floors.h"

namespace spillway::models {

enum class PipelineOpKind : std::uint8_t {
  forward,          // F
  backward,         // B with W in one
  input_gradient,   // B: the gradient of the input, which the position before waits for
  weight_gradient,  // W: the gradient of the weights, which nothing waits for
  recompute,        // R: the forward once more, before the backward; waits for no gradient
  paired,           // a forward and the whole backward of another micro-batch, overlapped
  offload,          // O, copy lane: activations to the host or to a peer
  reload,           // L, copy lane: back again
};
std::string_view to_string(PipelineOpKind kind);  // "F", "BW", "B", "W", "R", "FB", "O", "L"
constexpr bool is_copy(PipelineOpKind kind) {
  return kind == PipelineOpKind::offload || kind == PipelineOpKind::reload;
}

struct PipelinePass {
  std::int32_t micro_batch = 0;
  std::int16_t chunk = 0;  // of the device
  std::int16_t slice = 0;  // of the sequence, first tokens first
  friend bool operator==(const PipelinePass&, const PipelinePass&) = default;
};

struct PipelineOp {
  PipelinePass pass;
  PipelinePass second;      // paired: the pass with the backward that runs along
  std::int32_t after = -1;  // place in the same device's other lane that must have ended; -1: none
  std::int16_t peer = -1;   // copies: the device that holds the activations meanwhile; -1: the host
  PipelineOpKind kind = PipelineOpKind::forward;
};

struct PipelinePlan {
  struct Place {
    std::int32_t device = 0, chunk = 0;
  };

  std::string name;
  std::int64_t devices = 1;                      // p
  std::int64_t micro_batches = 1;                // m
  std::int64_t chunks = 1;                       // v: positions of a route per device
  std::int64_t slices = 1;                       // k: parts of a sequence that go through one after another
  std::vector<std::vector<Place>> routes;        // by position
  std::vector<std::uint8_t> route_of;            // by micro-batch; empty: all on route 0
  std::vector<std::vector<PipelineOp>> compute;  // by device
  std::vector<std::vector<PipelineOp>> copies;   // by device

  [[nodiscard]] std::int64_t positions() const { return devices * chunks; }
  [[nodiscard]] std::int64_t chunks_of_device() const { return chunks * static_cast<std::int64_t>(routes.size()); }
  [[nodiscard]] std::size_t route(std::int64_t micro_batch) const {
    return route_of.empty() ? 0 : route_of[static_cast<std::size_t>(micro_batch)];
  }
  [[nodiscard]] std::size_t operations() const;
};

// Chunk c of device d is position c p + d (Narayanan et al. 2021, section 2.2). No operations yet.
PipelinePlan looped_plan(std::string name, std::int64_t devices, std::int64_t micro_batches, std::int64_t chunks);
// As above, but odd chunks run backwards over the devices: chunk 1 of the last device follows its chunk 0.
PipelinePlan zigzag_plan(std::string name, std::int64_t devices, std::int64_t micro_batches, std::int64_t chunks);
// Two routes: position i is chunk 0 of device i, and chunk 1 of device p - 1 - i. `route_of` is left empty.
PipelinePlan bidirectional_plan(std::string name, std::int64_t devices, std::int64_t micro_batches);

// "F3" in plans of one chunk, "F3.1" for chunk 1, "F3/2" for slice 2, "F4.0&B1.1" for a pair.
std::string text_of(const PipelinePlan& plan, const PipelineOp& op);

}  // namespace spillway::models
