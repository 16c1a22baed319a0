// Trains a TrainerModel for some steps under a plan, on data that it makes.
//
// Data: each sample is a walk x -> 3x + 1 (mod vocabulary) from a random start, with one step in eight random. A model
// that learns thus has a loss well below log(vocabulary). Weights begin as sums of uniform numbers with deviation 0.02
// (projections into the residual stream divided by sqrt(2 layers), as GPT-2 does). All from the model's seed, in
// integer arithmetic: the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validation/trainer/plan_runner.h"

namespace spillway::validation {

struct TrainingRun {
  std::vector<StepMeasure> steps;
  std::uint64_t weights_digest = 0;  // of all weights and optimizer state at the end, each by Backend::digest()
  std::string file_access;           // TierStore::access()
};

// Throws InputError as PlanRunner does. time_kernels: of the last step.
TrainingRun train(Backend& backend, const StepGraph& graph, const Trace& trace, const Plan& plan,
                  const PlanRunOptions& options, int steps, bool time_kernels = false);

// Initial elements of a parameter, for the backend to make where it lies. `initial_weight()` gives the same on the
// host, number by number: the reference that tests hold backends to. bf16 weights are these rounded to nearest even;
// moments begin at 0.
Filling initial_filling(const StepGraph& graph, std::size_t parameter);
std::vector<float> initial_weight(const StepGraph& graph, std::size_t parameter);
// A step's tokens and targets.
void make_batch(const TrainerModel& model, std::int64_t step, std::vector<std::int32_t>& tokens,
                std::vector<std::int32_t>& targets);

// The trace of the graph's step with durations measured on the backend: the medians of some plain steps.
Trace measured_trace(Backend& backend, const StepGraph& graph, int steps = 3);

}  // namespace spillway::validation
