// A whole step from a StepShape, in closed form: pipeline, communication over replicas, update, memory. No events.
//
// Time, of 1F1B, interleaved 1F1B and GPipe with stages of unequal length:
//   period   of the slowest stage: F + B of its chunks, and what of 2 (pv - 1) transfers the schedule's lead doesn't
//            hide: 1F1B leads by p - 1 passes, just enough for none; interleaved by p - 1 chunk passes more
//   step     (m - 1) period + one F and B of every stage and their transfers, the interleaved ones' fill divided by v,
//            + the last gradients' reduction as far as the last backward doesn't cover it + tail + update
// The rules follow from the path of one micro-batch down and up the stages against the passes that the first stage
// works in the meantime (Narayanan et al. 2021, section 2.2, with transfers added).
// Memory, of the fullest stage: weights, gradients, states as ZeRO splits them, activations of as many micro-batches
// as the schedule keeps in flight, and the most held for a while in a pass or the update; in bytes allocated, times
// what the allocator reserved of the probe's; under stage 3 with what it had cached there.
//
// How far it lies from replays is measured by every sweep, which prints it.
#pragma once

#include <cstdint>

#include "studies/screen/step_shape.h"

namespace spillway::studies {

// Whether the schedule has a closed form here.
bool has_closed_form(const TrainingSetup& setup);

struct StepEstimate {
  Picos step_time{};
  Picos busy{};  // of it, in which a rank's kernels and collectives run; mean over ranks
  Bytes peak_allocated{}, peak_reserved{};
};

// `setup`: resolved, with the shape of shape_setup(setup) and a closed form. O(p v). Throws InputError for
// other schedules than 1F1B, interleaved 1F1B and GPipe.
StepEstimate estimate_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// No schedule of the same passes, whatever its placement, is faster: all work spread evenly over the stages. O(p v).
Picos least_step_time(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// No technique that moves a layer's activations off the device between its passes holds less there: weights, gradients
// and states, and of activations what one micro-batch has outside the layers and in two of them, the one at work and
// the one that leaves or comes. `setup` as of estimate_step(); a shape of full recomputation, whose layers keep their
// inputs alone, bounds those that also compute again. O(p v).
Bytes least_peak(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// A step under ZeRO stage 2 or 3 is no faster and holds no less on its fullest GPU than this, by the shape of
// plain_setup(): its passes in their schedule without a collective of gradients or weights; activations, and of
// weights, gradients and states a GPU's share. `busy` is 0. `setup` as of estimate_step(). O(p v).
StepEstimate least_sharded_step(const StepMachine& machine, const StepShape& plain, const TrainingSetup& setup);

}  // namespace spillway::studies
