// How long the evaluations of a scenario's training take, beside its steps.
#pragma once

#include <memory>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

std::shared_ptr<const EvaluationTraces> evaluation_traces(const ModelSpec& model, const TrainingSetup& setup,
                                                          const ScenarioMachine& machine);

// A model's training step, of all its micro-batches or of some.
std::shared_ptr<const EvaluationTraces> step_traces(const ModelSpec& model, const TrainingSetup& setup,
                                                    const ScenarioMachine& machine);

// The time of so many batches of each replica, on the scenario's hardware with its what-ifs, memory without a limit.
// Batches beyond those generated take as long as one more of these.
Picos time_of(const EvaluationTraces& traces, std::int64_t batches, const LoadedScenario& loaded);
// The most bytes allocated beside what is there before the first forward, on the device with most; and those before.
Bytes peak_of(const Trace& trace);
Bytes held_before(const Trace& trace);
// The most bytes of a device: what `held` has before its step, and the most that `other`, a trace of the same devices,
// allocates beside it.
Bytes peak_beside(const Trace& held, const Trace& other);

// Fills in `result.evaluation`. Nothing where the scenario doesn't evaluate.
void time_evaluation(const LoadedScenario& loaded, Result& result);

}  // namespace spillway::scenario
