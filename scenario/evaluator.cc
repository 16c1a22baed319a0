#include "scenario/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/byte_source.h"
#include "base/digest.h"
#include "base/input_error.h"
#include "base/log.h"
#include "base/number_text.h"
#include "models/pipeline/named_schedules.h"
#include "models/step/operator_list.h"
#include "models/step/parallel_trace.h"
#include "planners/offload/drive_life.h"
#include "planners/offload/offload_techniques.h"
#include "planners/technique/technique_table.h"
#include "scenario/evaluation.h"
#include "scenario/figure_range.h"
#include "scenario/hinges.h"
#include "scenario/load_and_save.h"
#include "scenario/recompute_gain.h"
#include "scenario/reserve.h"
#include "scenario/step_phases.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/unprofiled_step.h"

namespace spillway::scenario {
namespace {

// Never 0.
std::uint64_t digest_of(const std::string& text) {
  Digest digest;
  digest.add(text);
  return std::max<std::uint64_t>(1, digest.value());
}

Composition parts_of(const LoadedScenario& loaded) {
  const Scenario& scenario = loaded.scenario;
  Composition parts;
  if (loaded.plan) {
    parts.given_file = scenario.plan;
    if (loaded.plan->fates) parts.given_fates = &*loaded.plan->fates;
    if (loaded.plan->order) parts.given_order = &*loaded.plan->order;
    if (!loaded.plan->memory.empty()) parts.given_memory = &loaded.plan->memory;
  }
  if (parts.given_fates == nullptr && scenario.offload.moves())
    parts.fates = &technique_named(scenario.offload.technique);
  if (parts.given_order == nullptr && scenario.order != program_order_word)
    parts.order = technique_said(order_key, scenario.order);
  parts.memory = places_of(loaded);
  return parts;
}

void log_parts(const LoadedScenario& loaded, const Composition& parts) {
  if (!is_verbose()) return;
  const std::string& plan = loaded.scenario.plan;
  const auto named = [&](const char* part, const Technique* technique, bool given, const std::string& otherwise) {
    log_choice(part, given                  ? "the plan " + plan
                     : technique != nullptr ? technique->name + " (" + technique->key + ")"
                                            : otherwise);
  };
  named("technique", parts.fates, parts.given_fates != nullptr, "none: every tensor stays on the device");
  named("order", parts.order, parts.given_order != nullptr, "the program's");
  named("allocator", parts.memory, parts.given_memory != nullptr, loaded.options.memory.allocator);
}

std::optional<PipelinePlan> schedule_of(const LoadedScenario& loaded) {
  const TrainingSetup& setup = loaded.setup;
  if (loaded.scenario.model.empty() || setup.pipeline_parallel <= 1) return std::nullopt;
  if (setup.pipeline_plan) return *setup.pipeline_plan;
  return build_schedule(setup.pipeline_schedule,
                        {.devices = setup.pipeline_parallel, .micro_batches = setup.gradient_accumulation});
}

// Hands replays on, until one of a folded step is refused: what asks for it is given up there.
class FoldWatch final : public ReplayerBefore {
 public:
  explicit FoldWatch(const Replayer& of) : ReplayerBefore(of) {}
  [[nodiscard]] std::optional<FoldRefusal> refusal() const { return refusal_; }

 private:
  [[nodiscard]] Result seen(Result result, const ReplayVariation& /*variation*/) const override {
    if (!result.refusal) return result;
    const std::lock_guard lock(mutex_);
    if (!refusal_) refusal_ = result.refusal;
    throw Cancelled();
  }

  mutable std::mutex mutex_;
  mutable std::optional<FoldRefusal> refusal_;
};

ScenarioRun compose_run(const LoadedScenario& loaded, const Replayer& replayer) {
  const Composition parts = parts_of(loaded);
  log_parts(loaded, parts);
  std::optional<PipelinePlan> schedule;
  if (loaded.scenario.offload.technique == moved_by_schedule && loaded.layers.moved == 0)
    schedule = schedule_of(loaded);
  ComposedStep step = compose(parts, {.trace = loaded.trace,
                                      .replayer = replayer,
                                      .settings = loaded.scenario.offload,
                                      .layers = &loaded.layers,
                                      .schedule = schedule ? &*schedule : nullptr});
  ScenarioRun run;
  run.result = std::move(step.result);
  run.result.warnings = std::move(step.notes);
  if (parts.fates != nullptr && run.result.offload)
    if (std::string note = saves_nothing(*run.result.offload, run.result.memory); !note.empty())
      run.result.warnings.push_back(
          note + (run.result.ranks.size() > 1 ? "; bytes stored are those of one GPU of every rank together" : ""));
  rate_drives(replayer.hardware(), loaded.scenario.offload.demands, step.plan.fates.value_or(OffloadPlan()),
              step.planned ? *step.planned : PlannedTrace(), run.result);
  run.plan = std::move(step.plan);
  if (step.planned) {
    run.planned = std::move(step.planned->trace);
    run.gate = std::move(step.planned->gate);
  } else {
    run.planned = std::move(step.ordered);
  }
  return run;
}

ScenarioRun evaluate(const LoadedScenario& loaded, const Replayer& replayer) {
  const FoldWatch watch(replayer);
  try {
    return compose_run(loaded, watch);
  } catch (const Cancelled&) {
    if (!watch.refusal()) throw;
  }
  ScenarioRun run;
  run.result.refusal = watch.refusal();
  return run;
}

// A what-if's base is replayed beside it: on its own timings, without a plan.
void judge_fidelity(const LoadedScenario& loaded, ScenarioRun& run) {
  const bool own = !run.planned && loaded.options.speed == RelativeSpeed();
  ReplayOptions options;
  options.memory.allocator = ideal_policy;
  std::optional<Fidelity>& found = run.result.fidelity;
  found = fidelity_of(loaded.trace, own ? run.result : replay(loaded.trace, loaded.hardware, options));
  if (found) found->without_profiler = estimated_unprofiled_step(loaded.trace, loaded.hardware);
}

}  // namespace

std::string saves_nothing(const OffloadResult& moved, const MemoryResult& memory) {
  const std::string who =
      moved.technique.empty() ? "the plan" : moved.technique;  // none: a search chose to move nothing
  if (moved.stored + moved.recomputed == Bytes(0)) {
    if (moves_as_needed(who) && memory.known && !memory.out_of_memory)
      return who + " moves nothing, as nothing needs to move: the step fits without it";
    if (moved.candidates == Bytes(0))
      return who + " moves nothing: no tensor that the forward keeps is large enough to leave";
    const std::string rate = moved.store_bytes_per_second > 0
                                 ? fmt::format(": stores go at {:.3g} GB/s", moved.store_bytes_per_second / 1e9)
                                 : "";
    return fmt::format("{} moves nothing: all {} that it might move stay, as they would not be away and back in time{}",
                       who, gib_text(moved.candidates), rate);
  }
  return saves_nothing(fmt::format("{} stores {}", who, gib_text(moved.stored)), memory, moved.plain_peak);
}

Evaluator::Evaluator(const LoadedScenario& loaded, Shortage shortage)
    : PlainReplayer(loaded.hardware, loaded.options), loaded_(loaded), shortage_(shortage) {}

const ScenarioRun& Evaluator::run() const {
  std::unique_ptr<ScenarioRun>& known = known_[0];
  if (known) return *known;
  ScenarioRun run = within_reserve(
      loaded_, *this, [this](const Replayer& replayer) { return evaluate(loaded_, replayer); }, shortage_);
  Result& result = run.result;
  if (result.refusal) return *(known = std::make_unique<ScenarioRun>(std::move(run)));
  result.title = loaded_.scenario.title;
  if (loaded_.scenario.model.empty() && !models::is_priced(loaded_.trace)) {
    judge_fidelity(loaded_, run);
    result.step_time_range.basis = result.peak_range.basis = "a recorded step";
  } else {
    result.step_time_range = step_time_range(loaded_.setup, result, loaded_.hardware);
    result.peak_range = peak_range(loaded_.setup, result);
  }
  time_evaluation(loaded_, result);
  add_phases(loaded_, result);
  judge_load_and_save(loaded_, result);
  if (loaded_.evaluation && (!run.plan.memory.empty() || loaded_.options.memory.plan != nullptr))
    result.warnings.emplace_back("places are planned for the step alone: what the evaluation allocates is not in them");
  result.warnings.insert(result.warnings.begin(), loaded_.warnings.begin(), loaded_.warnings.end());
  const std::vector<std::string> first = fidelity_warnings(result);
  result.warnings.insert(result.warnings.begin(), first.begin(), first.end());
  // "dgx-h100+gpu=mine.json": its own parts are named.
  const bool is_put_together = loaded_.scenario.hardware.find('+') != std::string::npos;
  const std::int64_t all = loaded_.hardware.total_gpus(), used = loaded_.setup.gpus();
  const bool is_partly = !loaded_.scenario.model.empty() && used < all;
  if (is_put_together || is_partly || (!loaded_.hardware.assumed.empty() && !loaded_.scenario.hardware.empty())) {
    result.machine = loaded_.hardware.title;
    if (is_partly) result.machine += fmt::format("; {} of its {} GPUs used", used, all);
    result.machine_assumed = loaded_.hardware.assumed;
  }
  result.provenance.insert(result.provenance.begin(), loaded_.provenance.begin(), loaded_.provenance.end());
  result.hangs_on = hinges_of(loaded_, result);
  known = std::make_unique<ScenarioRun>(std::move(run));
  return *known;
}

ScenarioRun Evaluator::take_run() {
  run();
  ScenarioRun taken = std::move(*known_.at(0));
  known_.erase(0);
  return taken;
}

const ScenarioRun& Evaluator::run(const Plan& plan) const {
  std::unique_ptr<ScenarioRun>& known = known_[digest_of(plan_json(plan))];
  if (known) return *known;
  if (plan.schedule)
    throw InputError(loaded_.scenario.path, "/schedule", "the step is generated with its schedule already",
                     "name the plan in the scenario");
  LoadedScenario planned = loaded_;
  apply_plan(planned, plan);
  ScenarioRun run = Evaluator(planned).run();
  if (!run.planned) run.planned = std::move(planned.trace);  // a capture in a new order
  known = std::make_unique<ScenarioRun>(std::move(run));
  return *known;
}

MemoryReplayOptions memory_options(const LoadedScenario& loaded, const ScenarioRun& run) {
  MemoryReplayOptions memory = loaded.options.memory;
  for (const auto& [device, places] : run.plan.memory) {
    memory.plans[device] = std::make_shared<const MemoryPlan>(places);
    memory.allocator = policy_of(places);
  }
  return memory;
}

Plan whole_plan(const LoadedScenario& loaded, const ScenarioRun& run) {
  Plan plan = run.plan;
  const Scenario& scenario = loaded.scenario;
  if (scenario.model.empty() || loaded.setup.pipeline_parallel <= 1) return plan;
  if (loaded.setup.pipeline_plan) {
    plan.schedule = *loaded.setup.pipeline_plan;
    return plan;
  }
  // Of the step as it was generated: some schedules order by what the stages take, and what leaves meanwhile is the
  // fates' business.
  const ScenarioMachine machine(hardware_of(scenario));
  plan.schedule = generated_schedule(with_layers(scenario, find_model(scenario.model)), scenario.training, machine.cost,
                                     machine.cluster);
  return plan;
}

Result run_on(const LoadedScenario& loaded, const HardwareProfile& hardware, const ReplayOptions& options) {
  return evaluate(loaded, PlainReplayer(hardware, options)).result;
}

}  // namespace spillway::scenario
