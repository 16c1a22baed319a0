// A whole step from a StepShape, without its operators: pipeline, communication over replicas, update, memory.
//
// Time is that of 1F1B, interleaved 1F1B and GPipe with stages of unequal length. The schedule's passes run once with
// what they and the messages between their stages take (pipeline_ends.h). Each stage then adds its last gradients'
// reduction beyond the last backward, tail and update. A tied head also adds the sum of its gradients over first and
// last stage. The slowest stage is the step.
// Memory is that of the fullest stage: weights, gradients, states as ZeRO splits them, and activations of as many
// micro-batches as the schedule keeps in flight. The most held for a while in a pass or the update comes on top.
// With an inference engine its answers and the reference's forwards come before the step (scenario/step_phases.h).
// Reserved is that and the bytes that the allocator had cached of the probe. For a step on one stage that probe has the
// step's depth. For closer figures step_peak.h runs the allocator over the stage's own allocations.
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

// The same layout and batch under the nearest schedule with a closed form: 1F1B, interleaved where a device has several
// chunks and the micro-batches divide among the stages. It leaves out what a replay alone knows (chunks recomputed,
// states or chunks elsewhere, a schedule's file). Its time tells which of several such steps to replay first, not how
// long they are. `setup`: resolved.
TrainingSetup nearest_closed_form(TrainingSetup setup);

struct StepEstimate {
  Picos step_time{};
  Picos busy{};  // of it, in which a rank's kernels and collectives run; mean over ranks
  Bytes peak_allocated{}, peak_reserved{};
};

// Fields of a resolved set-up that make no difference to any of these functions: steps that differ in them alone are
// estimated alike. Values of such a field are taken or refused by resolve() whatever the others are (except "chunked"
// as a loss). Among "bucket_bytes", "loss", "overlap_gradients" and "prefetch".
std::vector<std::string_view> unseen_fields(const ModelSpec& model, const TrainingSetup& setup);

// `setup`: resolved, with the shape of shape_setup(setup) and a closed form. O(p² v), and O(1) for what
// machine.pipelines has run before. Throws InputError for other schedules than 1F1B, interleaved 1F1B and GPipe.
StepEstimate estimate_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// Peaks of allocated memory by stage; `setup` as of estimate_step().
std::vector<Bytes> stage_peaks(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// No schedule of the same passes, whatever its placement, is faster: all work spread evenly over the stages. O(p v).
Picos least_step_time(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// A lower bound of this set-up's step time and of its memory on the fullest GPU. Time: the kernels of its layers, on a
// stage between those of the first micro-batch on its way there and of the last on its way back. Memory: weights and
// states, and the activations that 1F1B, interleaved or GPipe keep in flight. Under ZeRO stage 3 weights and states are
// left out, as least_state_bytes() knows them. Only for has_closed_form(), except `busy`: the same kernels, spread
// evenly over the stages. `counted`: by layer, whether it is of the shape's kind; others take no time; empty: all are.
// O(p v + layers).
StepEstimate least_step(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup,
                        std::span<const char> counted = {});

// A lower bound of device memory under techniques that move a layer's activations off the device between its passes. It
// has weights, gradients and states. Its activations are what one micro-batch has outside the layers and in two of
// them, the one at work and the one that leaves or comes. `setup` as of estimate_step(). A shape of full recomputation,
// with layers that keep their inputs alone, bounds those that also recompute. O(p v).
Bytes least_peak(const StepMachine& machine, const StepShape& shape, const TrainingSetup& setup);

// A lower bound of a step under ZeRO stage 2 or 3, in time and in memory on its fullest GPU, by the shape of
// plain_setup(). Time: its passes in their schedule without a collective of gradients or weights. Memory: activations,
// and a GPU's share of weights, gradients and states. `busy` is 0. `setup` as of estimate_step(). O(p v).
StepEstimate least_sharded_step(const StepMachine& machine, const StepShape& plain, const TrainingSetup& setup);

}  // namespace spillway::studies
