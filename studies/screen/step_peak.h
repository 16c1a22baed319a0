// Memory that a step's allocator reserves, by its own allocations. The allocations of the fullest stage, and of the
// next if it is near, are put together as the schedule orders them, without times. The allocator is run over them. No
// other stage is recorded and no operator replayed.
//
// Reuse of cached blocks depends on the layers of a stage, on the micro-batches in flight, on what start-up leaves and
// on ZeRO's share. None of it follows from a shallower probe (up to 27 % off, docs/internals/sweep.md).
//
// The first warm-up and a few rounds of a schedule of many micro-batches are run: later rounds ask for the same again.
// Drawn loads of experts are a mean layer's and evaluations are left out, as in probes (step_shape.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "studies/screen/step_estimate.h"

namespace spillway::studies {

struct StepPeak {
  Bytes allocated{}, reserved{};
};

// Keeps what it has run: equal streams are run once. Of one machine.
class StepPeaks {
 public:
  // `setup`: resolved, with the shape of shape_setup(setup) and a closed form. `capacity`: if more is reserved, but the
  // step would fit by giving cached segments back, the result is what it then reserves; 0: no limit. May be called by
  // several threads. Throws what the generator throws. O(allocations of the stage).
  StepPeak peak(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup, Bytes capacity);

 private:
  struct Entry {
    std::once_flag once;
    StepPeak peak;
  };
  StepPeak stage_peak(const StepMachine& machine, const TrainingSetup& setup, std::int64_t stage, Bytes capacity);

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>> known_;  // by stream_key()
};

}  // namespace spillway::studies
