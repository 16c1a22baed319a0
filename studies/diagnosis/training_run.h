// A training run as so many equal steps: its time, its energy, the wear of its drives.
//
//   driver|step|step|step|evaluation|step|step|step|evaluation|...
//
// A replay's step is any step behind the first: the allocator has its segments, and the drives' write caches are as
// full as steps before have left them. N steps are N times that step, so nothing is simulated again: O(drive sets),
// however many steps. The first step takes the driver's time for the allocator's segments besides; its caches are empty
// still, with which it can only be faster. Not in it: the start of the program, checkpoints, reading data, failures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planners/offload/drive_life.h"
#include "scenario/scenario_run.h"

namespace spillway::studies {

// Wear of a set of drives, by all GPUs that share it. Shares are of the lifetime remaining at the run's start.
struct DriveWear {
  std::string name;   // "rank 3 scratch"
  std::string model;  // drive profile; empty: unknown
  std::int64_t drives = 1;
  double written_bytes = 0;
  std::optional<double> share, expected_share;  // share: by the bound that verdicts go by; none: not rated
  std::optional<std::int64_t> steps;            // whole steps that they take by that bound; none: no end, or not rated
  [[nodiscard]] bool wears_out() const { return share && *share > 1; }
};

struct TrainingRun {
  std::int64_t steps = 0;
  double seconds = 0;             // all of it
  double first_step_seconds = 0;  // what the first step takes beyond the others
  std::int64_t evaluations = 0;
  double evaluation_seconds = 0;  // of all of them
  std::optional<double> tokens;   // trained; not of a capture
  std::optional<double> joules;   // of all GPUs, while they step; where their power is known
  std::int64_t gpus = 1;
  planners::LifeBound bound = planners::LifeBound::rated;  // offload.life_bound
  std::vector<DriveWear> drives;                           // those written to
  [[nodiscard]] bool is_life_known() const;                // of every drive set written to
  [[nodiscard]] bool wears_out() const;
};

// Precondition: steps >= 1; the run's result has a step time.
TrainingRun training_run(const LoadedScenario& loaded, const Result& result, std::int64_t steps);

// Whole steps that train at least so many tokens. Throws InputError, naming `option`, where the step's tokens aren't
// known (a capture), or for more steps than can be counted.
std::int64_t steps_for_tokens(const LoadedScenario& loaded, double tokens, const std::string& option);

}  // namespace spillway::studies
