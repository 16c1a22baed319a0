// A scenario's figures, without the trace they come from: what sweeps, searches and a plain `spillway run` ask for.
//
// A generated step of many equal micro-batches is then made, lowered and replayed from few of them and reported as the
// whole (traces/step_fold.h), if that is exact; else whole. The same holds under techniques that plan each micro-batch
// by itself. The result is the same (docs/internals/engine.md), except for what goes op by op. Result::path is empty,
// and op_start, op_end, the memory's timeline and the plan are those of the ops that were generated.
#pragma once

#include <functional>
#include <optional>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

struct BriefRun {
  LoadedScenario loaded;  // its trace may lack micro-batches: options.memory.fold says so
  ScenarioRun run;
};

// Whether run_briefly() may tell the scenario by a part of its micro-batches; of a model, whether there are enough of
// them. Throws InputError as resolve() does.
bool may_fold(const Scenario& scenario);
bool may_fold(const Scenario& scenario, const ModelSpec& model);

// As load() and Evaluator::run() do, with its errors.
BriefRun run_briefly(const Scenario& scenario, Detail detail = Detail::figures, const ReadOptions& read = {});
BriefRun run_briefly(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine, Detail detail);

// The loop of run_briefly(), for other replays. `use` may take the loaded scenario and returns why its replay was
// refused (Result::refusal). It is then called again with more of the step; the last time with all of it.
void use_briefly(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine,
                 const std::function<std::optional<FoldRefusal>(LoadedScenario&)>& use);

// The same step of so few micro-batches that each follows another as in the whole, to seek plans on. None if the step
// is soon replayed itself, has unequal micro-batches, or is refused by may_fold().
std::optional<Scenario> brief_step(const Scenario& scenario);

}  // namespace spillway::scenario
