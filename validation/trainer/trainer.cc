#include "validation/trainer/trainer.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <cmath>
#include <span>

#include "base/digest.h"
#include "base/quantile.h"
#include "base/splitmix64.h"
#include "validation/trainer/step_trace.h"

namespace spillway::validation {
namespace {

constexpr std::uint64_t draws_of_normal = 12;

// Mean 0, deviation 1: twelve uniform numbers less their mean (Irwin-Hall).
float normal(SplitMix64& random) {
  std::int64_t sum = 0;
  for (std::uint64_t i = 0; i < draws_of_normal; ++i) sum += static_cast<std::int64_t>(random.next() >> 40U);
  return static_cast<float>(sum - 6 * (std::int64_t{1} << 24)) / static_cast<float>(1 << 24);
}

std::span<const std::byte> bytes_of_vector(const auto& values) { return std::as_bytes(std::span(values)); }

void fill_state(PlanRunner& runner, const StepGraph& graph) {
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    const StepGraph::Parameter& parameter = graph.parameters[p];
    const Filling weight = initial_filling(graph, p);
    runner.fill(parameter.weight, weight);
    if (parameter.master != parameter.weight) runner.fill(parameter.master, weight);
    for (const std::uint32_t moment : {parameter.first, parameter.second}) runner.fill(moment, {});
  }
}

std::uint64_t digest_of_state(PlanRunner& runner, const StepGraph& graph) {
  Digest digest;
  for (const StepGraph::Parameter& parameter : graph.parameters)
    for (const std::uint32_t tensor : {parameter.weight, parameter.master, parameter.first, parameter.second})
      digest.add(runner.digest(tensor));
  return digest.value();
}

}  // namespace

Filling initial_filling(const StepGraph& graph, std::size_t p) {
  const StepGraph::Parameter& parameter = graph.parameters[p];
  if (parameter.is_vector) return {.value = parameter.is_norm_weight ? 1.0F : 0.0F};
  const std::string& name = graph.tensors[parameter.weight].name;
  const bool into_residual = name.ends_with("projection.weight") || name.ends_with("down.weight");
  return {.deviation = into_residual ? 0.02F / std::sqrt(2.0F * static_cast<float>(graph.model.layers)) : 0.02F,
          .seed = graph.model.seed * 1'000'003 + p};
}

std::vector<float> initial_weight(const StepGraph& graph, std::size_t p) {
  const Filling filling = initial_filling(graph, p);
  std::vector<float> values(static_cast<std::size_t>(graph.tensors[graph.parameters[p].weight].elements),
                            filling.value);
  if (filling.deviation == 0) return values;
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, values.size(), std::size_t{1} << 16), [&](const auto& range) {
    SplitMix64 random(filling.seed, range.begin() * draws_of_normal);
    for (std::size_t i = range.begin(); i < range.end(); ++i) values[i] = filling.deviation * normal(random);
  });
  return values;
}

void make_batch(const TrainerModel& model, std::int64_t step, std::vector<std::int32_t>& tokens,
                std::vector<std::int32_t>& targets) {
  SplitMix64 random(model.seed * 7919 + static_cast<std::uint64_t>(step));
  const auto vocabulary = static_cast<std::uint64_t>(model.vocabulary);
  tokens.clear();
  targets.clear();
  for (std::int64_t b = 0; b < model.batch; ++b) {
    std::uint64_t at = random.next() % vocabulary;
    for (std::int64_t i = 0; i < model.sequence; ++i) {
      tokens.push_back(static_cast<std::int32_t>(at));
      at = random.next() % 8 == 0 ? random.next() % vocabulary : (3 * at + 1) % vocabulary;
      targets.push_back(static_cast<std::int32_t>(at));
    }
  }
}

TrainingRun train(Backend& backend, const StepGraph& graph, const Trace& trace, const Plan& plan,
                  const PlanRunOptions& options, int steps, bool time_kernels) {
  PlanRunner runner(backend, graph, trace, plan, options);
  fill_state(runner, graph);
  TrainingRun run;
  std::vector<std::int32_t> tokens, targets;
  for (int step = 1; step <= steps; ++step) {
    make_batch(graph.model, step, tokens, targets);
    runner.write(graph.tokens, bytes_of_vector(tokens));
    runner.write(graph.targets, bytes_of_vector(targets));
    run.steps.push_back(runner.run(step, time_kernels && step == steps));
  }
  run.weights_digest = digest_of_state(runner, graph);
  run.file_access = runner.file_access();
  return run;
}

Trace measured_trace(Backend& backend, const StepGraph& graph, int steps) {
  const Picos launch = microseconds(3);  // of this trainer's host loop; only its order matters to plans
  const Trace plain =
      step_trace(graph, std::vector<Picos>(graph.calls.size(), microseconds(1)), launch, backend.device());
  PlanRunOptions options;
  std::vector<std::vector<Picos>> samples(graph.calls.size());
  for (int s = 0; s < steps; ++s) {
    const TrainingRun run = train(backend, graph, plain, {}, options, 2, true);
    for (std::size_t c = 0; c < samples.size(); ++c) samples[c].push_back(run.steps.back().kernel_times[c].duration);
  }
  std::vector<Picos> medians;
  for (const std::vector<Picos>& sample : samples) medians.push_back(upper_median(sample));
  return step_trace(graph, medians, launch, backend.device());
}

}  // namespace spillway::validation
