// PipeOffload (arXiv 2503.01328) in a generated step. Activations of a pipeline schedule's first chunks stay in host
// memory between their forward and their backward. po-h moves those of half a stage's chunks, po-f of all.
//
//   compute   F3.0 | F3.1 ... | B1.1 | ...  | B3.0
//   copies    [3.0 out]            [3.0 in  ]         in begins one copy each way ahead of its backward
//
// A layer's saved tensors leave when their writer is done, one copy at a time each way over the machine's links. The
// stage asks for them when it begins the last pass that starts early enough before the backward. The lead is the time
// that the chunk's bytes take out and in, alone on the links. Times are those of a replay in which nothing moves. A
// backward that follows its own forward leaves no time, and nothing moves. Embeddings, head and loss stay.
#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/model_spec.h"
#include "models/spec/training_setup.h"
#include "planners/offload/offload_run.h"

namespace spillway::planners {

struct ChunkedLayers {
  std::vector<std::int16_t> chunk;  // by layer, of its stage
  std::int64_t moved = 0;           // the first so many of them move; 0: none does, and `chunk` is empty
};
// `setup` is resolved. O(layers + operations of the plan).
ChunkedLayers chunked_layers(const ModelSpec& model, const TrainingSetup& setup);

// Throws InputError where the hardware has no way to host memory. O(uses log), and the replays of
// replay_with_forwarding() and one.
OffloadOutcome run_pipeoffload(const Trace& trace, const ChunkedLayers& layers, const Replayer& replayer,
                               const OffloadSettings& settings);

}  // namespace spillway::planners
