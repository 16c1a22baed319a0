#include "scenario/step_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/number_text.h"
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
std::vector<PeakOwner> owners_of(const Trace& trace, const PhaseResult& phase, Bytes held) {
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
  std::vector<PeakOwner> owners = {
      {phase.name == "rollout" ? "inference engine" : "the reference's forwards", phase.allocated - held, true}};
  for (const auto& [place, bytes] : roles)
    if (fullest != devices.end() && place.first == fullest->first && bytes != Bytes(0))
      owners.push_back({place.second.empty() ? "not known" : place.second, bytes, !place.second.empty()});
  std::stable_sort(owners.begin(), owners.end(),
                   [](const PeakOwner& a, const PeakOwner& b) { return a.bytes > b.bytes; });
  return owners;
}

// The memory of the phase that needs most is the step's.
void take_fullest(const Trace& trace, Bytes held, Result& result) {
  const auto fullest =
      std::max_element(result.phases.begin(), result.phases.end(),
                       [](const PhaseResult& a, const PhaseResult& b) { return a.reserved < b.reserved; });
  if (fullest->reserved <= result.memory.peak_reserved) return;
  MemoryResult& memory = result.memory;
  memory.phase = fullest->name;
  memory.peak_allocated = fullest->allocated;
  memory.peak_reserved = fullest->reserved;
  memory.owners = owners_of(trace, *fullest, held);
  memory.owners_by_layer.clear();
  memory.owners_by_phase.clear();
  memory.largest = {};
  result.peak_range = {.basis = "no published peak of such a phase was compared"};
}

}  // namespace

void hold_engine(LoadedScenario& loaded, const ModelSpec& model, const ScenarioMachine& machine) {
  const TrainingSetup& setup = loaded.setup;
  if (!setup.has_engine()) return;
  loaded.engine = models::inference_engine(model, setup, loaded.hardware.gpu);
  if (loaded.engine->asleep > Bytes(0))
    loaded.reserve.parts.push_back({.name = "inference engine",
                                    .bytes = loaded.engine->asleep,
                                    .provenance = "scenario",
                                    .source = "rollout_memory, awake while the model is trained"});
  if (setup.reference == models::Reference::none) return;
  TrainingSetup forwards = models::reference_setup(model, setup);
  forwards.evaluation_batches = setup.gradient_accumulation;
  forwards.evaluation_micro_batch = 0;
  loaded.reference = evaluation_traces(model, forwards, machine);
}

void add_phases(const LoadedScenario& loaded, Result& result) {
  if (!loaded.engine) return;
  const models::InferenceEngine& engine = *loaded.engine;
  const Bytes held = held_before(loaded.trace), asleep = engine.asleep;
  PhaseResult rollout =
      judged({.name = "rollout", .time = engine.time(), .peak = held + engine.taken, .basis = rollout_basis(engine)},
             loaded.reserve, asleep, loaded.capacity);
  if (engine.at_once == 0) {
    rollout.verdict = Verdict::does_not_fit;
    rollout.short_of = std::max(rollout.short_of, engine.answer_cache - engine.cache);
  }
  result.phases.push_back(std::move(rollout));
  if (loaded.reference)
    result.phases.push_back(judged({.name = "reference",
                                    .time = time_of(*loaded.reference, loaded.setup.gradient_accumulation, loaded),
                                    .peak = held + peak_of(loaded.reference->whole) + asleep,
                                    .basis = "forwards as replayed; what they allocate beside what is held"},
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
  if (all == Verdict::tight) result.memory.is_tight = true;
  take_fullest(loaded.trace, held, result);
  const double share = result.step_time > Picos(0) ? to_seconds(training) / to_seconds(result.step_time) : 1;
  result.tokens_per_second *= share;
  result.mfu *= share;
  result.step_time_range = {.basis = "the rates of the inference engine are assumed"};
  if (engine.on_host > Bytes(0))
    result.warnings.push_back(
        fmt::format("asleep, the engine's weights take {} of host memory for each GPU; they are "
                    "not in the host's peak",
                    gib_text(engine.on_host)));
}

}  // namespace spillway::scenario
