// The memory of each of a step's GPUs over time: who holds how much, on that GPU's own clock.
//
//   bins      |  0  |  1  |  2  | ...     each shows the fullest instant of its span, so that no peak is lost
//   owners    from below: weights, optimizer states, gradients, activations, temporary, others
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario_run.h"
#include "sim/pictures/memory_picture.h"
#include "studies/diagnosis/passes.h"

namespace spillway::studies {

// A tensor held at the peak; of a snapshot, the line that asked for it.
struct HeldTensor {
  std::string name, owner, layer;  // layer: "layer 7"; empty: none
  Bytes bytes{};
  std::uint64_t blocks = 1;
  std::vector<std::string> frames;  // innermost first; of a snapshot
};

struct StageMemory {
  std::string name;  // "stage 3", "GPU", "host memory"
  Verdict verdict = Verdict::unknown;
  Bytes capacity{}, limit{};                // 0: unknown; limit: less what is kept free
  Bytes peak_allocated{}, peak_reserved{};  // the replay's
  std::optional<double> idle;               // of its GPU, share of the replay
  bool timed = false;                       // picoseconds; else memory events
  std::int64_t begin = 0, end = 1;
  std::vector<std::string> owners;
  std::vector<std::vector<std::int64_t>> bins;  // bytes by bin, by owner
  std::int64_t peak_at = 0;
  std::int64_t peak_event = -1;       // in Trace::memory_events
  std::vector<std::int64_t> at_peak;  // bytes by owner
  std::string peak_words;             // "in the backward of layer 31"; empty: nobody knows
  std::vector<HeldTensor> tensors;    // the largest at the peak, most bytes first
  std::vector<Pass> passes;
};

constexpr std::size_t most_tensors = 50;

// "optimizer states" for "optimizer_state": what people read of a role's word; other owners as they are.
std::string owner_words(const std::string& owner);

// Owners, bins and peak of a picture with changes. bins > 0. O(changes + bins).
StageMemory stage_of(const MemoryPicture& picture, std::size_t bins);

// One for each GPU that was replayed, or of a step on the CPU its host memory; none where the memory is not known.
// Runs each GPU's stream of allocations once more. Precondition: take_replayed_order(loaded, run).
std::vector<StageMemory> stage_memories(const LoadedScenario& loaded, const ScenarioRun& run, std::size_t bins);

}  // namespace spillway::studies
