// The phases of a step that trains on its own answers: the engine's answers, what other models say of them, training.
// It has loss group with an inference engine, or with PPO's other models. Phases are one behind the other. The step
// takes their sum, and each must fit.
//
//   rollout         what the training keeps between steps, and the engine awake (models/step/inference_engine.h)
//   reference       forwards that keep nothing, of all micro-batches, beside the same and the engine asleep
//   rewards         the same of a reward model (models/spec/models_beside.h)
//   values          the same of a value model
//   value step      a step of the value model, beside the same
//   training        the step as replayed, beside the engine asleep, which is a part of the reserve
//
// Weights and states of every model are there in every phase (models/step/interlude.h, hold_beside()). Deviations: each
// answer is trained on once, by both models. Log-probabilities of the answers under the weights that gave them come
// from the engine, and advantages, a number a token, take nothing.
#pragma once

#include "scenario/scenario_run.h"

namespace spillway::scenario {

// The engine, its part of the reserve, and what other models do before the training, where the set-up has phases.
void hold_phases(LoadedScenario& loaded, const ModelSpec& model, const ScenarioMachine& machine);

// Fills in `result.phases` and composes the step of them: its time, rates and verdict. Its memory is that of the phase
// that needs most. Nothing where there are none.
void add_phases(const LoadedScenario& loaded, Result& result);

}  // namespace spillway::scenario
