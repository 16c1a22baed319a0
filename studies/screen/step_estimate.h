// A whole step from a StepShape, without its operators: pipeline, communication over replicas, update, memory.
//
// Time, of 1F1B, interleaved 1F1B and GPipe with stages of unequal length: the schedule's passes, run once with what
// they and the messages between their stages take (pipeline_ends.h); then, stage by stage, the last gradients'
// reduction as far as the last backward doesn't cover it, what first and last stage share summed where the head is
// tied, tail and update. The slowest stage is the step.
// Memory, of the fullest stage: weights, gradients, states as ZeRO splits them, activations of as many micro-batches
// as the schedule keeps in flight, and the most held for a while in a pass or the update; reserved is that and the
// bytes that the allocator had cached of the probe. Of a step on one stage the probe for these has the step's depth.
// Where that is not close enough, step_peak.h runs the allocator over the stage's own allocations.
//
// How far it lies from replays is measured by every sweep, which prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "studies/screen/step_shape.h"

namespace spillway::studies {

// Whether the schedule has a closed form here.
bool has_closed_form(const TrainingSetup& setup);

// The same layout and batch under the nearest schedule that has one: 1F1B, interleaved where a device has several
// chunks and the micro-batches divide among the stages; without what a replay alone knows (chunks recomputed, states or
// chunks elsewhere, a schedule's file). What it takes tells which of several such steps to replay first, not how long
// they are. `setup`: resolved.
TrainingSetup nearest_closed_form(TrainingSetup setup);

struct StepEstimate {
  Picos step_time{};
  Picos busy{};  // of it, in which a rank's kernels and collectives run; mean over ranks
  Bytes peak_allocated{}, peak_reserved{};
};

// Fields of a resolved set-up, of those that any of these functions may look at, that make no difference to it: steps
// that differ in them alone are estimated alike, and resolve() takes or refuses a value of them whatever the others
// are (but "chunked" as a loss). Among "bucket_bytes", "loss", "overlap_gradients" and "prefetch".
std::vector<std::string_view> unseen_fields(const ModelSpec& model, const TrainingSetup& setup);

// `setup`: resolved, with the shape of shape_setup(setup) and a closed form. O(p² v), and O(1) for what
// machine.pipelines has run before. Throws InputError for other schedules than 1F1B, interleaved 1F1B and GPipe.
StepEstimate estimate_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// Of what is allocated at most, by stage; `setup` as of estimate_step().
std::vector<Bytes> stage_peaks(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// No schedule of the same passes, whatever its placement, is faster: all work spread evenly over the stages. O(p v).
Picos least_step_time(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// No step of this set-up is faster, and on its fullest GPU none holds less: the kernels of its layers, on a stage
// between those of the first micro-batch on its way there and of the last on its way back; weights and states, which
// under ZeRO stage 3 least_state_bytes() knows and are left out here, and the activations that 1F1B, interleaved or
// GPipe keep in flight. Of has_closed_form() alone, but for `busy`: the same kernels, spread evenly over the stages.
// counted: by layer, whether it is of the shape's kind; others take no time; empty: all are. O(p v + layers).
StepEstimate least_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup,
                        std::span<const char> counted = {});

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
