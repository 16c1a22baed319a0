// The phases of a step that trains on its own answers (loss group with an inference engine): the engine's answers, the
// reference's log-probabilities, training. One behind the other, so that the step takes their sum, and each must fit.
//
//   rollout    what the training keeps between steps, and the engine awake (models/step/inference_engine.h)
//   reference  forwards that keep nothing, of all micro-batches, beside the same and the engine asleep
//   training   the step as replayed, beside the engine asleep, which is a part of the reserve
#pragma once

#include "scenario/scenario_run.h"

namespace spillway::scenario {

// The engine, the reference's forwards and the engine's part of the reserve, where the set-up has an engine.
void hold_engine(LoadedScenario& loaded, const ModelSpec& model, const ScenarioMachine& machine);

// Fills in `result.phases` and composes the step of them: its time, rates and verdict. Its memory is that of the phase
// that needs most. Nothing where there is no engine.
void add_phases(const LoadedScenario& loaded, Result& result);

}  // namespace spillway::scenario
