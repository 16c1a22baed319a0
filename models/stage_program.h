// StageProgram: what one rank of a pipeline stage does in a step, recorded once.
//
// All micro-batches of a chunk are alike but for the first (it makes the gradients), the last (it reduces them) and
// what each has from the one before; so at most four are recorded (first, second, any, last) and the rest are copies of
// the third (models/trace_assembly.h).
//
//   setup | chunk 0: F0 B0 F1 B1 F2 B2 F3 B3 | chunk 1: ... | update
#pragma once

#include <cstdint>
#include <vector>

#include "models/communication.h"
#include "models/cost_model.h"
#include "models/eager_session.h"
#include "models/model_spec.h"
#include "models/parallel_layout.h"
#include "models/training_setup.h"
#include "traces/trace.h"

namespace spillway {

struct StageProgram {
  struct Section {
    TraceMark begin, end;
    std::vector<OpId> sends,
        receives;  // to and from neighbouring stages; the n-th receive gets what the n-th send sent
  };
  Trace trace;
  std::int64_t stage = 0;
  std::int64_t chunks = 1;
  std::int64_t micro_batches = 1;  // of the step
  std::int64_t recorded = 1;       // min(micro_batches, 4)
  std::vector<Section> sections;   // in the order above

  [[nodiscard]] std::size_t section(std::int64_t chunk, std::int64_t recorded_micro_batch, bool is_backward) const {
    return static_cast<std::size_t>(1 + (chunk * recorded + recorded_micro_batch) * 2 + (is_backward ? 1 : 0));
  }
  [[nodiscard]] std::size_t update_section() const { return sections.size() - 1; }
  // The recorded micro-batch that micro_batch is a copy of.
  [[nodiscard]] std::int64_t recording_of(std::int64_t micro_batch) const {
    if (micro_batch == micro_batches - 1) return recorded - 1;
    return micro_batch < recorded - 2 ? micro_batch : recorded - 2;
  }
};

// `setup` is resolved. O(layers of the stage).
StageProgram record_stage(const ModelSpec& model, const TrainingSetup& setup, const CostModel& cost,
                          const ParallelLayout& layout, const CollectiveTimer& timer, std::int64_t stage);

}  // namespace spillway
