// Whether the planner finds layouts as good as published ones: for each published set-up, a sweep over all layouts of
// the same model, GPUs and batch, in the same framework.
//
// Free are the tensor, pipeline and data split, chunks, micro-batch and recomputation, and the ZeRO stage where the
// published one splits gradients; everything else is as published. Both layouts are replayed on the same profile, so
// the comparison is of choices, not of predictions with measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/replay/verdict.h"
#include "validation/published/case_file.h"

namespace spillway::validation {

struct SetupChoice {
  const Case* published = nullptr;
  std::int64_t gpus = 0, batch = 0;                         // batch: sequences a step
  std::int64_t points = 0, replayed = 0, not_replayed = 0;  // points: valid ones that may fit
  std::string published_layout, chosen_layout;
  double published_seconds = 0, chosen_seconds = 0;  // replayed
  Verdict published_verdict = Verdict::unknown;
  // 1 + points that fit and are faster, each by its replay, or by the screen's estimate where it has none.
  std::int64_t rank = 1;
  std::string skipped;  // why there is no choice; empty: there is one

  [[nodiscard]] bool is_as_fast() const { return chosen_seconds > 0 && chosen_seconds <= published_seconds; }
};

// The fastest measured case of each model, batch and number of GPUs, in the files' order. Cases are of whole steps with
// at least 8 and at most `most_gpus` GPUs.
struct PublishedSetup {
  const CaseFile* file = nullptr;
  const Case* fastest = nullptr;
};
std::vector<PublishedSetup> published_setups(const std::vector<CaseFile>& files, std::int64_t most_gpus);

// Replays at most `replays` layouts besides the published one, on oneTBB's threads; twice as many as long as none of
// them fits and is as fast. `progress`: false stops it, and the
// choice is then of what was replayed. Memory: O(points that the screen can't rule out).
SetupChoice choose_layout(const PublishedSetup& setup, std::int64_t replays,
                          const std::function<bool(const std::string&, std::int64_t, std::int64_t)>& progress = {});

}  // namespace spillway::validation
