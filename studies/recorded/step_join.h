// A recorded step beside the generated one of its scenario, kind of operator by kind, and the GPU's profile with what
// the recording says of it:
//
//   kind        recorded   generated   factor            kernels, the longest beside the longest
//   product     42.4 ms    41.1 ms     1.03 (less noise) 0.91 ... 1.20
//   norms ...
//
// Each kind's factor multiplies the profile's own (hwprofiles::OperatorScale), so that any set-up generated on the
// profile has kernels as they were measured. Schedule, network and host stay the simulation's. A factor is the ratio of
// a step's sums, less the spread of the recorded steps. Kinds below half a percent of the step, and those that the
// recording or the generated step lacks, keep theirs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "hwprofiles/gpu_profile.h"
#include "scenario/scenario_run.h"
#include "traces/read_options.h"

namespace spillway::studies {

struct KindJoin {
  ScaledOperator of = ScaledOperator::memory_bound;
  std::int64_t recorded_kernels = 0, generated_kernels = 0;  // of a step, on one rank; a product's as one, too
  Picos recorded{}, generated{}, corrected{};                // their sums; corrected: generated on the new profile
  double noise = 0;                                          // of the recorded steps' sums: (most - least) / median
  double factor = 1;                                         // that the profile got; 1: none
  double least = 1, most = 1;  // recorded over corrected of single kernels: of nine tenths of the time
};

struct StepJoin {
  std::vector<KindJoin> kinds;  // that either has, most recorded time first
  // Copies, sets, and kernels of no kind; collectives, with what a rank waits for others in them.
  Picos recorded_others{}, generated_others{};
  Picos recorded_collectives{}, generated_collectives{};
  std::size_t recorded_steps = 0;
  Picos measured{};            // the step: as measured without a profiler, else as the recording is replayed
  bool is_unprofiled = false;  // the former
  bool is_estimated =
      false;         // or, of a full capture, as sim/replay/unprofiled_step.h estimates it without its profiler
  double noise = 0;  // of the steps so measured; 0: of one
  Picos generated{}, corrected{};
  Bytes recorded_peak{}, generated_peak{};  // allocated; 0: unknown
  GpuProfile profile;                       // "checked-NAME"
  std::string machine;                      // its title
};

// `recording`: a trace or a folder of spillway.torch. `scenario`: its step; of several ranks the one with the
// recording's place among them. `date`: ISO 8601. Throws InputError where no kernels with times are recorded, and where
// the two are not the same step. Differences: the GPU's multiprocessors; 15 % more products or attention kernels in one
// of them. Further: products, attention or an optimizer twice as long, or the GPU's work 2.5 times that of the other.
StepJoin join_step(const Scenario& recording, const Scenario& scenario, const std::string& date,
                   const ReadOptions& read = {});

}  // namespace spillway::studies
