// The best order of a pipeline that fits into memory.
//
// Candidates, the shortest one wins:
//   every named schedule that fits, at one, two and four chunks per device, with none to all chunks recomputed
//   the greedy zero-bubble orders within the limits given
//   a beam search over the orders of OrderSpace, looped and in a V
//   for small problems with one chunk per device, all orders of OrderSpace, by branch and bound
// The shortest of each number of chunks and each placement, with and without recomputation, are then improved, the best
// of these the longest. Improvement moves passes within their devices' orders and recomputes single ones
// (schedule_moves.h). So the answer is never longer than the best named schedule that fits. With one chunk per device
// asked for, small problems end with a proof that no order is shorter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/pipeline/pipeline_plan.h"
#include "models/pipeline/stage_times.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"

namespace spillway::planners {

struct SearchRequest {
  std::int64_t devices = 1, micro_batches = 1;
  std::int64_t chunks = 0;  // per device; 0: one, two and four are tried
  // Per part of the model, parts as many as devices times max(1, chunks); or one for all. With chunks 0 a part is cut
  // into equal pieces for more chunks.
  StageTimes times;
  std::vector<double> limits;  // micro-batches of a device's share, by device, or one for all; empty: none
  ActivationRules rules;
  bool two_copies = false;         // also schedules that hold the weights twice (dualpipe, chimera)
  std::int64_t beam = 24;          // states kept; >= 1
  std::int64_t effort = 400'000;   // states of the exact search
  std::int64_t moves = 150'000;    // tried by the improvement; an eighth of them from each start
  std::uint64_t seed = 1;          // of the improvement
  std::function<bool()> progress;  // called now and then; false stops with the best so far
};

struct SearchResult {
  bool found = false;  // something fits
  PipelinePlan plan;   // if so; its name says where it comes from
  StageTimes times;    // for its chunks
  PipelineTimeline timeline;
  std::vector<double> peaks;
  std::string best_named;  // the shortest named schedule that fits; empty: none does
  Ticks best_named_makespan = 0;
  // No order of so many chunks per device that holds the weights once and recomputes nothing is shorter.
  Ticks lower_bound = 0;
  bool proven = false;  // the bound is reached
};

// Deterministic: equal requests give equal results. Throws InputError for sizes out of range and for limits or times
// that are neither one nor one per device or part.
SearchResult search_schedule(const SearchRequest& request);

}  // namespace spillway::planners
