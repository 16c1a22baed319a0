// How long generating a training step takes: traces per second and ops per second.
#include <benchmark/benchmark.h>

#include "hwprofiles/profile_library.h"
#include "models/step/trace_generator.h"

namespace spillway::bench {
namespace {

void generate(benchmark::State& state, const char* name, std::int64_t sequence, std::int64_t micro_batches) {
  const CostModel cost(ProfileLibrary::standard().load_system("dgx-h100"));
  const ModelSpec model = find_model(name);
  const TrainingSetup setup{.sequence = sequence, .gradient_accumulation = micro_batches};
  std::int64_t ops = 0;
  for (auto _ : state) {
    const Trace trace = generate_trace(model, setup, cost);
    ops += static_cast<std::int64_t>(trace.ops.size());
    benchmark::DoNotOptimize(trace.ops.start.data());
  }
  state.SetItemsProcessed(ops);
}
BENCHMARK_CAPTURE(generate, llama_3_8b, "llama-3-8b", 8192, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, llama_3_8b_16_micro_batches, "llama-3-8b", 8192, 16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, gpt3_175b, "gpt3-175b", 2048, 1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
