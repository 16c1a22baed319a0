// StageProgram: what one rank of a pipeline stage does in a step, recorded once.
//
// All micro-batches of a chunk are alike, except the first, which makes the gradients, and the last, which reduces
// them. Each also has references to the one before. So at most four are recorded (first, second, any, last) and the
// rest are copies of the third (models/step/trace_assembly.h). If experts' loads differ, every one is recorded. They
// are recorded one after another, each through all chunks of the stage and back. A chunk that follows another on the
// same device gets that one's result as it is.
//
// Slices of a sequence (seq1f1b) are recorded one by one, forwards first to last, backwards last to first.
//
//   setup | F0.0 F0.1 B0.1 W0.1 B0.0 W0.0 | F1.0 ... | update          (micro-batch . chunk)
//
// A backward is recorded whole, or as B and W if the plan ever leaves a W for later. W has the products that make
// gradients of weights, the biases' sums, and the tensors these need. Norms and embeddings stay in B, as in the Zero
// Bubble papers' own code. So W keeps 32 of the 34 bytes per token and width that a GPT layer keeps (Qi et al. 2024,
// section 2.1). A chunk that recomputes keeps its input alone, until R.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/cost/cost_model.h"
#include "models/pipeline/chunk_passes.h"
#include "models/pipeline/stage_times.h"
#include "models/session/communication.h"
#include "models/session/eager_session.h"
#include "models/spec/model_spec.h"
#include "models/spec/parallel_layout.h"
#include "models/spec/training_setup.h"
#include "traces/trace.h"

namespace spillway::models {

struct StageProgram {
  enum class Part : std::uint8_t { forward, recompute, backward, weights };
  static constexpr std::int64_t parts = 4;
  static constexpr std::int64_t usually_recorded = 4;

  struct Section {
    TraceMark begin, end;
    std::vector<OpId> sends,
        receives;       // to and from neighbouring stages; the n-th receive gets what the n-th send sent
    double joules = 0;  // of its kernels, beyond what the GPU draws idle
  };
  struct Chunk {
    ChunkPasses passes;
    std::int64_t recorded = 1;  // min(turns, most_recorded)
    // Chunks of the same stage that hand over to this one and that it hands over to; -1: none.
    std::int64_t before = -1, after = -1;
    // The recorded micro-batch that a turn is a copy of.
    [[nodiscard]] std::int64_t recording_of(std::int64_t turn) const {
      if (turn == passes.turns - 1) return recorded - 1;
      return turn < recorded - 2 ? turn : recorded - 2;
    }
  };
  Trace trace;
  std::int64_t stage = 0;
  std::vector<Chunk> chunks;
  std::vector<Edge> carried;         // to the next step, see Trace::carried
  std::optional<DevicePower> power;  // without the step's work; absent: nothing is known of it
  std::vector<StartUpEvent> start_up;
  std::int64_t slices = 1;                        // of each sequence
  std::int64_t most_recorded = usually_recorded;  // of a chunk's micro-batches; all where no two are alike
  // setup, by chunk, recorded micro-batch, slice and part, update; empty where there is none
  std::vector<Section> sections;

  [[nodiscard]] std::size_t section(std::int64_t chunk, std::int64_t recorded, std::int64_t slice, Part part) const {
    return static_cast<std::size_t>(1 + ((chunk * most_recorded + recorded) * slices + slice) * parts +
                                    static_cast<std::int64_t>(part));
  }
  [[nodiscard]] std::size_t update_section() const { return sections.size() - 1; }
};

// `setup` is resolved; the plan's orders don't matter, but what passes its chunks have. O(layers of the stage).
StageProgram record_stage(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                          const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage,
                          const PipelinePlan& plan);

// An evaluation's forwards alone, by a plan of forwards (models/step/evaluation_pass.h): nothing is kept, no optimizer
// is there. `setup`: the evaluation's.
StageProgram record_evaluation(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                               const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage,
                               const PipelinePlan& plan);

// The time of one micro-batch's passes through a chunk, over its slices: kernels and the gaps between them, and
// collectives of tensor, context and expert groups; or the host's if that is longer. In picoseconds. A backward that
// was recorded whole has W 0.
PassTimes pass_times(const StageProgram& program, std::int64_t chunk, const GpuProfile& gpu);
// Bytes that one micro-batch's pass through a chunk leaves behind, or gives back where negative; gradients of weights
// not counted.
std::int64_t bytes_kept(const StageProgram& program, std::int64_t chunk, StageProgram::Part part);
// The share of what a micro-batch's forward keeps that its B does not give back, in millionths.
std::int64_t weight_part(const StageProgram& program, std::int64_t chunk);

}  // namespace spillway::models
