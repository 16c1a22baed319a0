// The best offloading of a step's activations, whichever way the step is made. The mix
// (planners/offload/hybrid_search.h) is planned on the scenario's step, and on the steps that these settings could make
// of it instead:
//
//   model.recompute         none, selective, full      the generator's own recomputation
//   model.optimizer_device  cpu                        the optimizer's states off the GPU, and with each of these
//
// A setting's step is planned when it may win: kept whole, it would be faster than the best so far. Tensors that leave
// or are recomputed on top save no time, except the allocator's waits for the driver. Steps that have such waits are
// compared by their time without a limit and fragmentation. So the answer is never slower than any of these settings
// with any technique of the table, and always fits if one of them does. If nothing keeps the whole reserve, all is
// searched again without its margin, and what then fits is tight.
//
// For a step of many micro-batches (scenario/brief_run.h: brief_step), settings are replayed folded, and the mix is
// searched on the step of few. For each place of the states it is searched on the fastest step that keeps more than
// fits, and on the others only while nothing fits. Mixes that may win, by their time there, are replayed whole. The
// baselines are then keeping all alone.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planners/offload/hybrid_search.h"
#include "planners/recompute/recompute_run.h"
#include "scenario/scenario_run.h"
#include "studies/candidates/row.h"

namespace spillway::studies {

// What a variant may change.
struct VariantLimits {
  bool recompute = true;
  bool host = true;  // may hold the optimizer's states
};

// Other ways to make the step ("full", "full+cpu-optimizer"): of the table of techniques, those that its generator
// makes; not what the scenario says already. None of a captured step.
std::vector<Candidate> step_variants(const LoadedScenario& loaded, const VariantLimits& limits);

// With nothing moved; its error: why the scenario can't be made so.
struct VariantCase : Row {
  std::shared_ptr<const LoadedScenario> loaded;  // null: refused
  Picos least{};                                 // no plan on it is faster
  bool is_same = false;                          // the same step as the scenario's, or another variant's
  bool planned = false;                          // the mix was planned on it
};

// The scenario with settings on top. Throws InputError.
using ScenarioWith = std::function<Scenario(std::span<const std::string>)>;

// Settings by which a run does what the case does; empty: only its plan does. A mix found with decisions forbidden is
// such a plan.
std::vector<std::string> settings_of(const HybridCase& found);

struct BestOffload {
  std::vector<std::string> settings;             // that the plan stands on; empty: the scenario's own step
  std::shared_ptr<const LoadedScenario> loaded;  // with them, where the plan moves anything; null: the scenario's own
  HybridOutcome outcome;                         // baselines: those of the scenario's own step
  std::vector<VariantCase> variants;
  std::int64_t replays = 0;  // all of them
};

// loaded: with({}). Throws InputError as plan_hybrid() does. progress: called before each replay with the number done,
// in one thread at a time; false leaves what there is.
BestOffload best_offload(const LoadedScenario& loaded, const ScenarioWith& with, const HybridSettings& settings,
                         const std::function<bool(std::int64_t)>& progress = {});

struct BestRecompute {
  std::vector<std::string> settings;
  std::shared_ptr<const LoadedScenario> loaded;
  RecomputeOutcome outcome;
  std::vector<VariantCase> variants;
};

// The same of recomputation alone: the planner's best, and the generator's own ways.
BestRecompute best_recompute(const LoadedScenario& loaded, const ScenarioWith& with, const RecomputeSettings& settings,
                             const std::function<bool(std::int64_t)>& progress = {});

}  // namespace spillway::studies
