// From a scenario to a Result: reads or generates the trace, finds the hardware, replays.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "hwprofiles/profile_library.h"
#include "models/cost/cost_model.h"
#include "models/spec/model_spec.h"
#include "models/step/inference_engine.h"
#include "models/step/parallel_trace.h"
#include "planners/offload/pipeoffload.h"
#include "planners/technique.h"
#include "scenario/scenario.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/plan.h"
#include "sim/replay/replay.h"
#include "traces/formats/read.h"

namespace spillway::scenario {

// The profile that a scenario of a model names, with its overrides. Throws InputError as the library does.
HardwareProfile hardware_of(const Scenario& scenario);

// Machines like this one, with the times of its networks' collectives.
Cluster cluster_of(const HardwareProfile& hardware);

// What steps are generated for. Scenarios that name the same machine may share one.
struct ScenarioMachine {
  explicit ScenarioMachine(HardwareProfile profile)
      : hardware(std::move(profile)), cost(hardware), cluster(cluster_of(hardware)) {}

  HardwareProfile hardware;
  CostModel cost;
  Cluster cluster;
};

// The model with as many layers as the scenario says. Throws InputError for encoder-decoders.
ModelSpec with_layers(const Scenario& scenario, ModelSpec model);

// An evaluation's forwards, or another model's step: all its batches or as many as tell what one more takes.
struct EvaluationTraces {
  Trace whole;
  std::optional<Trace> shorter;  // with fewer batches, where `whole` hasn't all
  std::int64_t batches = 0, shorter_batches = 0;
};

// A part of the step before the training that is replayed by itself (scenario/step_phases.h).
struct PhaseTraces {
  std::string name, basis;
  std::shared_ptr<const EvaluationTraces> traces;
  std::int64_t batches = 0;
};

// The loaded parts of a scenario: replays of it share these and are independent of each other.
struct LoadedScenario {
  Scenario scenario;
  Trace trace;
  HardwareProfile hardware;  // with the scenario's overrides
  ReplayOptions options;
  Bytes capacity{};  // of each device, for the step's allocator; 0 unknown
  Reserve reserve;   // kept free of it: options.memory.capacity is the rest
  std::vector<std::string> warnings;
  std::vector<InputProvenance> provenance;
  TrainingSetup setup;  // of a generated step: the scenario's, with its defaults filled in
  std::shared_ptr<const EvaluationTraces> evaluation;  // of a generated step with evaluate_every; else null
  // The inference engine of a generated step, and what other models do before the training.
  std::optional<models::InferenceEngine> engine;
  std::vector<PhaseTraces> before_training;
  // Loads and saves of whole weights (scenario/load_and_save.h).
  std::vector<PhaseResult> between_steps;
  ChunkedLayers layers;  // of a generated step with a schedule that moves activations
  // `fates`, order and places of the scenario's plan, as far as it has them; null: none. Techniques plan the others.
  std::shared_ptr<const Plan> plan;
  [[nodiscard]] bool offloads() const { return (plan && plan->fates) || scenario.offload.moves(); }
};

// Throws InputError (also what the readers and the generator throw), Cancelled by the progress callback.
LoadedScenario load(const Scenario& scenario, const ReadOptions& read = {});
// With a model of the caller's own instead of the one the scenario names.
LoadedScenario load(const Scenario& scenario, const ModelSpec& model);
// And with ScenarioMachine(hardware_of(scenario)) at hand.
LoadedScenario load(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine);
// And with generated_step() of a scenario of the same step_key() at hand.
LoadedScenario load(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine, Trace step);

// The step that a scenario of a model is replayed from, before anything is done to it. Throws as load() does.
Trace generated_step(const Scenario& scenario, const ModelSpec& model, const ScenarioMachine& machine);
// Names all that the step depends on: scenarios of equal keys replay the same generated step, or the same capture.
std::string step_key(const Scenario& scenario);
// Names all that ScenarioMachine(hardware_of(scenario)) depends on.
std::string machine_key(const Scenario& scenario);

// With the trace that the scenario names at hand, as read_captured() gives it: what-ifs on a capture don't read
// it again. Precondition: the scenario has a trace.
LoadedScenario load_captured(const Scenario& scenario, Trace captured);
// The scenario's trace, joined with its execution trace.
Trace read_captured(const Scenario& scenario, const ReadOptions& read);

// Completes a captured trace for planners that move tensors (sim/replay/captured_step.h); what was inferred becomes a
// warning and a line of the provenance. load() does so for scenarios that offload. Idempotent. Throws InputError when
// the capture has too little, or the technique is `stream` and the capture shows no weights.
void prepare_for_offload(LoadedScenario& loaded);

// A replay of a scenario, and the trace it is of: the scenario's, or as its plan changes it.
struct ScenarioRun {
  Result result;
  Plan plan;  // what was followed, all parts
  std::optional<Trace> planned;
  std::vector<OpId> gate;  // PlannedTrace::gate of `planned`
  [[nodiscard]] const Trace& trace(const LoadedScenario& loaded) const { return planned ? *planned : loaded.trace; }
};
ScenarioRun run_traced(const LoadedScenario& loaded);
Result run(const LoadedScenario& loaded);

// Has the scenario follow the plan's `fates`, order and places. Places are followed only if the scenario names no
// allocator or memory plan. The order of a capture is applied at once. Throws InputError for a plan of another trace.
void apply_plan(LoadedScenario& loaded, const Plan& plan);
// How the run's allocations were placed: the scenario's options, with the places that its plan has.
MemoryReplayOptions memory_options(const LoadedScenario& loaded, const ScenarioRun& run);
// All that the run followed as one plan, its schedule with it.
Plan whole_plan(const LoadedScenario& loaded, const ScenarioRun& run);
// The technique that plans places for the scenario's requests; null: its allocator needs none, or its plan has them.
const Technique* places_of(const LoadedScenario& loaded);

// The GPU profile a capture's device name and memory size fit, or an empty text. "Tesla V100-SXM2-32GB" with 32 GB fits
// "v100-sxm2-32gb". Every word of the profile's name that is a model's number, "pcie" or "nvl" must occur, the memory
// must agree within 10 %. The profile with most words in common wins.
std::string match_gpu(const ProfileLibrary& library, std::string_view device_name, Bytes device_memory);

// One relaxation of explain: what the step would gain if one resource were faster.
struct Relaxation {
  std::string resource;  // "GPU arithmetic x2"
  Picos step_time{};
  double gain = 0;  // 1 - step_time / unrelaxed
};
// Replays with each resource twice as fast, in parallel; in the order of the fields of RelativeSpeed, then the whole
// GPU. Scenarios that offload also run with the links and with the drives infinitely fast (relaxed_hardware.h). They
// are planned again where the technique plans; PCIe twice as fast is then that of the transfers too.
std::vector<Relaxation> explain(const LoadedScenario& loaded, const Result& unrelaxed);

}  // namespace spillway::scenario
