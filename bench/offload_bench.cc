// Planning a step's activations: the mix (planners/offload/hybrid_search.h) on a generated step of about 10,000
// tensors, GPT-2 XL with 48 layers, three micro-batches and no fused attention, at 60 % of what keeping everything
// takes; and one replay of it.
#include <benchmark/benchmark.h>

#include "planners/offload/hybrid_search.h"
#include "scenario/scenario_run.h"

namespace spillway::bench {
namespace {

LoadedScenario gpt2_xl() {
  return load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-xl", "sequence": 1024, "micro_batch": 8, "gradient_accumulation": 3,
              "flash_attention": false},
    "hardware": {"profile": "h100-80gb-1gpu"}})",
                             "benchmark", ""));
}

void replay_step(benchmark::State& state) {
  const LoadedScenario loaded = gpt2_xl();
  for (auto _ : state) benchmark::DoNotOptimize(replay(loaded.trace, loaded.hardware, loaded.options));
  state.counters["tensors"] = static_cast<double>(loaded.trace.tensors.size());
  state.counters["operators"] = static_cast<double>(loaded.trace.ops.size());
}

void plan_step(benchmark::State& state) {
  const LoadedScenario loaded = gpt2_xl();
  HybridSettings settings;
  settings.budget = replay(loaded.trace, loaded.hardware, loaded.options).memory.peak_reserved * 6 / 10;
  std::int64_t replays = 0;
  double gain = 0;
  for (auto _ : state) {
    const HybridOutcome outcome = plan_hybrid(loaded.trace, PlainReplayer(loaded.hardware, loaded.options), settings);
    replays = outcome.replays;
    gain = 1 - to_seconds(outcome.best.result.step_time) / to_seconds(outcome.baselines.front().result.step_time);
  }
  state.counters["tensors"] = static_cast<double>(loaded.trace.tensors.size());
  state.counters["replays"] = static_cast<double>(replays);
  state.counters["slower_than_keep"] = -gain;
}

BENCHMARK(replay_step)->Unit(benchmark::kMillisecond);
BENCHMARK(plan_step)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
