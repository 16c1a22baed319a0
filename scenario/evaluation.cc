#include "scenario/evaluation.h"

#include <algorithm>
#include <utility>

#include "models/step/evaluation_pass.h"
#include "models/step/trace_generator.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::scenario {
namespace {

// By device, of the events before the step or of those in it.
std::vector<Bytes> most_allocated(const Trace& trace, bool before) {
  std::vector<std::pair<Bytes, Bytes>> devices;  // held now, at most
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0 || (event.anchor == OpId::none) != before) continue;
    const auto device = static_cast<std::size_t>(event.device);
    if (device >= devices.size()) devices.resize(device + 1);
    auto& [held, most] = devices[device];
    if (event.action == MemoryAction::allocate) held += event.bytes;
    if (event.action == MemoryAction::free_requested) held -= event.bytes;
    most = std::max(most, held);
  }
  std::vector<Bytes> most;
  for (const auto& device : devices) most.push_back(device.second);
  return most;
}

Bytes most_of(const std::vector<Bytes>& devices) {
  return devices.empty() ? Bytes(0) : *std::max_element(devices.begin(), devices.end());
}

}  // namespace

Bytes peak_of(const Trace& trace) { return most_of(most_allocated(trace, false)); }
Bytes held_before(const Trace& trace) { return most_of(most_allocated(trace, true)); }

Bytes peak_beside(const Trace& held, const Trace& other) {
  std::vector<Bytes> devices = most_allocated(held, true);
  const std::vector<Bytes> more = most_allocated(other, false);
  devices.resize(std::max(devices.size(), more.size()));
  for (std::size_t device = 0; device < more.size(); ++device) devices[device] += more[device];
  return most_of(devices);
}

Picos time_of(const EvaluationTraces& traces, std::int64_t batches, const LoadedScenario& loaded) {
  ReplayOptions options = loaded.options;
  options.memory = {.allocator = std::string(ideal_policy)};
  const auto span = [&](const Trace& trace) { return replay(trace, loaded.hardware, options).replayed; };
  const Picos time = span(traces.whole);
  if (!traces.shorter) return time;
  const Picos more = time - span(*traces.shorter);
  const std::int64_t rest = batches - traces.batches, apart = traces.batches - traces.shorter_batches;
  return time + Picos(static_cast<std::int64_t>(static_cast<double>(more.count()) / static_cast<double>(apart) *
                                                static_cast<double>(rest)));
}

std::shared_ptr<const EvaluationTraces> evaluation_traces(const ModelSpec& model, const TrainingSetup& setup,
                                                          const ScenarioMachine& machine) {
  auto traces = std::make_shared<EvaluationTraces>();
  traces->batches = simulated_batches(setup);
  traces->whole = generate_evaluation(model, setup, machine.cost, machine.cluster, traces->batches);
  if (traces->batches == setup.evaluation_batches) return traces;
  traces->shorter_batches = traces->batches / 2;
  traces->shorter = generate_evaluation(model, setup, machine.cost, machine.cluster, traces->shorter_batches);
  return traces;
}

std::shared_ptr<const EvaluationTraces> step_traces(const ModelSpec& model, const TrainingSetup& setup,
                                                    const ScenarioMachine& machine) {
  constexpr std::int64_t even_groups = 4;  // as simulated_batches() has them
  auto traces = std::make_shared<EvaluationTraces>();
  TrainingSetup part = setup;
  const auto generate = [&](std::int64_t batches) {
    part.gradient_accumulation = batches;
    return generate_trace(model, part, machine.cost, machine.cluster);
  };
  traces->batches = std::min(setup.gradient_accumulation, even_groups * setup.pipeline_parallel);
  traces->whole = generate(traces->batches);
  if (traces->batches == setup.gradient_accumulation) return traces;
  traces->shorter_batches = traces->batches / 2;
  traces->shorter = generate(traces->shorter_batches);
  return traces;
}

void time_evaluation(const LoadedScenario& loaded, Result& result) {
  if (!loaded.evaluation) return;
  const EvaluationTraces& traces = *loaded.evaluation;
  const TrainingSetup& setup = loaded.setup;
  EvaluationResult evaluation{
      .every_steps = setup.evaluate_every, .batches = setup.evaluation_batches, .simulated_batches = traces.batches};
  evaluation.time = time_of(traces, setup.evaluation_batches, loaded);
  const std::int64_t batch = setup.evaluation_micro_batch > 0 ? setup.evaluation_micro_batch : setup.micro_batch;
  evaluation.tokens = batch * setup.sequence * setup.evaluation_batches * setup.data_parallel;
  evaluation.peak = peak_of(traces.whole);
  const double steps = static_cast<double>(setup.evaluate_every),
               seconds = steps * to_seconds(result.step_time) + to_seconds(evaluation.time);
  if (seconds > 0) {
    evaluation.time_share = to_seconds(evaluation.time) / seconds;
    evaluation.tokens_per_second = steps * static_cast<double>(setup.step_tokens()) / seconds;
  }
  result.evaluation = evaluation;
}

}  // namespace spillway::scenario
