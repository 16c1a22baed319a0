#include "scenario/evaluator.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/input_error.h"
#include "base/log.h"
#include "models/pipeline/named_schedules.h"
#include "planners/offload/drive_life.h"
#include "planners/technique/technique_table.h"
#include "scenario/reserve.h"

namespace spillway::scenario {
namespace {

// Never 0.
std::uint64_t digest_of(const std::string& text) {
  Digest digest;
  digest.add(text);
  return std::max<std::uint64_t>(1, digest.value());
}

// Under the fates of a plan.
TechniquePart follow(const LoadedScenario& loaded, const Replayer& replayer) {
  OffloadOutcome outcome;
  outcome.plan = *loaded.fates;
  replay_with_forwarding(loaded.trace, replayer, outcome);
  OffloadResult& moved = outcome.moved;
  moved.candidates = moved.stored + moved.recomputed;
  moved.kept = moved.forwarded;
  outcome.result.offload = moved;
  TechniquePart part;
  part.plan.fates = std::move(outcome.plan);
  part.planned = std::move(outcome.planned);
  part.result = std::move(outcome.result);
  return part;
}

TechniquePart part_of(const LoadedScenario& loaded, const Replayer& replayer) {
  const OffloadSettings& settings = loaded.scenario.offload;
  if (loaded.fates) return follow(loaded, replayer);
  if (!settings.moves()) {
    TechniquePart part;
    part.result = replayer.replay(loaded.trace);
    return part;
  }
  const TrainingSetup& setup = loaded.setup;
  std::optional<PipelinePlan> schedule;
  if (settings.technique == moved_by_schedule && loaded.layers.moved == 0)
    schedule = build_schedule(setup.pipeline_schedule,
                              {.devices = setup.pipeline_parallel, .micro_batches = setup.gradient_accumulation});
  return technique_named(settings.technique)
      .make({.trace = loaded.trace,
             .replayer = replayer,
             .settings = settings,
             .layers = &loaded.layers,
             .schedule = schedule ? &*schedule : nullptr});
}

void log_technique(const LoadedScenario& loaded) {
  const std::string& technique = loaded.scenario.offload.technique;
  log_choice("technique", loaded.fates                       ? "the plan " + loaded.scenario.plan
                          : !loaded.scenario.offload.moves() ? "none: every tensor stays on the device"
                                                             : technique + " (offload.technique)");
  log_choice("allocator", loaded.options.memory.allocator);
}

ScenarioRun evaluate(const LoadedScenario& loaded, const Replayer& replayer) {
  log_technique(loaded);
  TechniquePart part = part_of(loaded, replayer);
  ScenarioRun run;
  run.result = std::move(part.result);
  rate_drives(replayer.hardware(), loaded.scenario.offload.demands, part.plan.fates.value_or(OffloadPlan()),
              part.planned ? *part.planned : PlannedTrace(), run.result);
  if (part.planned) {
    run.planned = std::move(part.planned->trace);
    run.gate = std::move(part.planned->gate);
  }
  return run;
}

}  // namespace

Evaluator::Evaluator(const LoadedScenario& loaded) : loaded_(loaded), replayer_(loaded.hardware, loaded.options) {}

Result Evaluator::replay(const Trace& trace, const ReplayVariation& variation) const {
  return replayer_.replay(trace, variation);
}

Result Evaluator::replay(PlannedTrace planned, const ReplayVariation& variation) const {
  return replayer_.replay(std::move(planned), variation);
}

const ScenarioRun& Evaluator::run() const {
  std::unique_ptr<const ScenarioRun>& known = known_[0];
  if (known) return *known;
  ScenarioRun run =
      within_reserve(loaded_, *this, [this](const Replayer& replayer) { return evaluate(loaded_, replayer); });
  Result& result = run.result;
  result.title = loaded_.scenario.title;
  result.warnings = loaded_.warnings;
  result.provenance.insert(result.provenance.begin(), loaded_.provenance.begin(), loaded_.provenance.end());
  known = std::make_unique<const ScenarioRun>(std::move(run));
  return *known;
}

const ScenarioRun& Evaluator::run(const Plan& plan) const {
  std::unique_ptr<const ScenarioRun>& known = known_[digest_of(plan_json(plan))];
  if (known) return *known;
  if (plan.schedule)
    throw InputError(loaded_.scenario.path, "/schedule", "the step is generated with its schedule already",
                     "name the plan in the scenario");
  LoadedScenario planned = loaded_;
  apply_plan(planned, plan);
  ScenarioRun run = Evaluator(planned).run();
  if (!run.planned) run.planned = std::move(planned.trace);
  known = std::make_unique<const ScenarioRun>(std::move(run));
  return *known;
}

Result run_on(const LoadedScenario& loaded, const HardwareProfile& hardware, const ReplayOptions& options) {
  return evaluate(loaded, PlainReplayer(hardware, options)).result;
}

}  // namespace spillway::scenario
