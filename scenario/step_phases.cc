#include "scenario/step_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "models/spec/models_beside.h"
#include "models/step/reference_pass.h"
#include "scenario/evaluation.h"

namespace spillway::scenario {
namespace {

// Of what isn't found by a replay: a margin given up makes it tight.
PhaseResult judged(PhaseResult phase, const Reserve& reserve, Bytes asleep, Bytes capacity) {
  phase.allocated = phase.reserved = phase.peak - asleep;
  if (capacity <= Bytes(0)) return phase;
  const Bytes limit = std::max(Bytes(1), capacity - (reserve.taken - asleep));
  phase.verdict = verdict_of(phase.peak, limit);
  if (phase.verdict == Verdict::does_not_fit)
    phase.short_of = phase.peak - limit;
  else if (phase.peak > limit - reserve.margin)
    phase.verdict = Verdict::tight;
  return phase;
}

std::string rollout_basis(const models::InferenceEngine& engine) {
  if (engine.at_once == 0)
    return fmt::format("the engine's weights take {} of its {}, and one answer's cache {}", gib_text(engine.weights),
                       gib_text(engine.taken), gib_text(engine.answer_cache));
  return fmt::format("{} answers, {} at once; weights {}, cache {}; rates are assumed shares of the GPU's",
                     engine.answers, engine.at_once, gib_text(engine.weights), gib_text(engine.cache));
}

// What stays through every phase, by role, on the device with most; and the phase's own beside it.
std::vector<PeakOwner> owners_of(const Trace& trace, const PhaseResult& phase) {
  std::map<std::pair<std::int16_t, std::string>, Bytes> roles;
  std::map<std::int16_t, Bytes> devices;
  for (const MemoryEvent& event : trace.memory_events) {
    const bool allocates = event.action == MemoryAction::allocate, frees = event.action == MemoryAction::free_requested;
    if (event.device < 0 || event.anchor != OpId::none || (!allocates && !frees)) continue;
    const bool is_named = event.tensor != TensorId::none;
    const std::string role(is_named ? to_string(trace.tensors.role[index_of(event.tensor)]) : std::string_view());
    const Bytes change = allocates ? event.bytes : Bytes(0) - event.bytes;
    roles[{event.device, role}] += change;
    devices[event.device] += change;
  }
  const auto fullest = std::max_element(devices.begin(), devices.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const Bytes held = fullest == devices.end() ? Bytes(0) : fullest->second;
  const std::string name = phase.name == "rollout" ? "inference engine" : "work of the phase: " + phase.name;
  std::vector<PeakOwner> owners = {{name, phase.allocated - held, true}};
  for (const auto& [place, bytes] : roles)
    if (fullest != devices.end() && place.first == fullest->first && bytes != Bytes(0))
      owners.push_back({place.second.empty() ? "not known" : place.second, bytes, !place.second.empty()});
  std::stable_sort(owners.begin(), owners.end(),
                   [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
  return owners;
}

// The memory of the phase that needs most is the step's.
void take_fullest(const Trace& trace, Result& result) {
  const auto fullest =
      std::max_element(result.phases.begin(), result.phases.end(),
                       [](const PhaseResult& a, const PhaseResult& b) { return a.reserved < b.reserved; });
  if (fullest->reserved <= result.memory.peak_reserved) return;
  MemoryResult& memory = result.memory;
  memory.phase = fullest->name;
  memory.peak_allocated = fullest->allocated;
  memory.peak_reserved = fullest->reserved;
  memory.owners = owners_of(trace, *fullest);
  memory.owners_by_layer.clear();
  memory.owners_by_phase.clear();
  memory.largest = {};
  result.peak_range = {.basis = "no published peak of such a phase was compared"};
}

}  // namespace

void hold_phases(LoadedScenario& loaded, const ModelSpec& model, const ScenarioMachine& machine) {
  const TrainingSetup& setup = loaded.setup;
  if (!setup.has_phases()) return;
  if (setup.has_engine()) loaded.engine = models::inference_engine(model, setup, loaded.hardware.gpu);
  if (loaded.engine && loaded.engine->asleep > Bytes(0))
    loaded.reserve.parts.push_back({.name = "inference engine",
                                    .bytes = loaded.engine->asleep,
                                    .provenance = "scenario",
                                    .source = "rollout_memory, awake while the model is trained"});
  const auto add_forwards = [&](const char* name, const ModelSpec& spec, const TrainingSetup& of) {
    TrainingSetup forwards = models::reference_setup(spec, of);
    forwards.evaluation_batches = of.gradient_accumulation;
    forwards.evaluation_micro_batch = 0;
    loaded.before_training.push_back({name, "forwards as replayed; what they allocate beside what is held",
                                      evaluation_traces(spec, forwards, machine), of.gradient_accumulation});
  };
  if (setup.reference != models::Reference::none) add_forwards("reference", model, setup);
  if (const auto reward = reward_model(model, setup))
    add_forwards("rewards", *reward, resolve(reward_setup(setup, setup.gradient_accumulation), *reward));
  const auto value = value_model(model, setup);
  if (!value) return;
  const TrainingSetup trained = resolve(value_setup(setup, value_batches(setup)), *value);
  add_forwards("values", *value, trained);
  loaded.before_training.push_back({"value step", "its step as replayed; what it allocates beside what is held",
                                    step_traces(*value, trained, machine), trained.gradient_accumulation});
}

void add_phases(const LoadedScenario& loaded, Result& result) {
  if (!loaded.setup.has_phases()) return;
  const Bytes held = held_before(loaded.trace), asleep = loaded.engine ? loaded.engine->asleep : Bytes(0);
  if (loaded.engine) {
    const models::InferenceEngine& engine = *loaded.engine;
    PhaseResult rollout =
        judged({.name = "rollout", .time = engine.time(), .peak = held + engine.taken, .basis = rollout_basis(engine)},
               loaded.reserve, asleep, loaded.capacity);
    if (engine.at_once == 0) {
      rollout.verdict = Verdict::does_not_fit;
      rollout.short_of = std::max(rollout.short_of, engine.answer_cache - engine.cache);
    }
    result.phases.push_back(std::move(rollout));
  }
  for (const PhaseTraces& before : loaded.before_training)
    result.phases.push_back(judged({.name = before.name,
                                    .time = time_of(*before.traces, before.batches, loaded),
                                    .peak = peak_beside(loaded.trace, before.traces->whole) + asleep,
                                    .basis = before.basis},
                                   loaded.reserve, asleep, loaded.capacity));
  result.phases.push_back({.name = "training",
                           .time = result.step_time,
                           .peak = result.memory.peak_reserved + asleep,
                           .allocated = result.memory.peak_allocated,
                           .reserved = result.memory.peak_reserved,
                           .verdict = result.as_replayed(),
                           .short_of = result.memory.short_of,
                           .basis = "as replayed"});
  const Picos training = result.step_time;
  result.step_time = Picos(0);
  Verdict all = Verdict::fits;
  for (const PhaseResult& phase : result.phases) {
    result.step_time += phase.time;
    all = both(all, phase.verdict);
    if (phase.verdict != Verdict::does_not_fit || phase.name == "training") continue;
    result.memory.out_of_memory = true;
    result.memory.short_of = std::max(result.memory.short_of, phase.short_of);
    result.memory.explanation = fmt::format("{}: {} at once; {}", phase.name, gib_text(phase.peak), phase.basis);
  }
  if (all == Verdict::tight && !result.memory.is_tight) {
    result.memory.is_tight = true;
    result.memory.limit += loaded.reserve.margin;  // given up, as for a training that is tight
  }
  take_fullest(loaded.trace, result);
  const double share = result.step_time > Picos(0) ? to_seconds(training) / to_seconds(result.step_time) : 1;
  result.tokens_per_second *= share;
  result.mfu *= share;
  result.step_time_range = {.basis = loaded.engine ? "the rates of the inference engine are assumed"
                                                   : "no published step of such phases was compared"};
  if (loaded.engine && loaded.engine->on_host > Bytes(0))
    result.warnings.push_back(
        fmt::format("asleep, the engine's weights take {} of host memory for each GPU; they are "
                    "not in the host's peak",
                    gib_text(loaded.engine->on_host)));
}

}  // namespace spillway::scenario
