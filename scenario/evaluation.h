// How long the evaluations of a scenario's training take, beside its steps.
#pragma once

#include <memory>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

std::shared_ptr<const EvaluationTraces> evaluation_traces(const ModelSpec& model, const TrainingSetup& setup,
                                                          const ScenarioMachine& machine);

// Fills in `result.evaluation`: replays the forwards on the scenario's hardware with its what-ifs, memory without a
// limit. Batches beyond those generated take as long as one more of these. Nothing where the scenario doesn't evaluate.
void time_evaluation(const LoadedScenario& loaded, Result& result);

}  // namespace spillway::scenario
