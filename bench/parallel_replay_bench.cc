// How long a step on many GPUs takes from its description to its result: generating one rank per pipeline stage, and
// replaying it with its memory. The two sizes are promises: under 1 s, and under 5 s in less than 2 GB. Then figures
// alone, for which equal micro-batches are replayed once where that is exact; linear in them is the allocator alone.
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include "scenario/brief_run.h"
#include "scenario/scenario_run.h"

namespace spillway::bench {
namespace {

Scenario scenario(const char* model, std::int64_t sequence, std::int64_t micro_batches, const char* hardware) {
  Scenario result;
  result.model = model;
  result.hardware = hardware;
  result.training = {.sequence = sequence,
                     .gradient_accumulation = micro_batches,
                     .framework = Framework::megatron_2022,
                     .tensor_parallel = 8,
                     .sequence_parallel = true,
                     .pipeline_parallel = 16};
  return result;
}

template <class... Columns>
double bytes_of(const Columns&... columns) {
  return static_cast<double>(((columns.size() * sizeof(columns[0])) + ...));
}

// What a trace keeps, by operator: of the operators with their tensors and uses, and with edges, memory events and
// collectives besides.
void count_bytes(benchmark::State& state, const Trace& trace) {
  const Ops& o = trace.ops;
  const Tensors& t = trace.tensors;
  const double operators = static_cast<double>(o.size());
  const double alone =
      bytes_of(o.name, o.kind, o.phase, o.lane, o.layer, o.micro_batch, o.step, o.flags, o.start, o.duration,
               o.launched_by, o.span, o.bytes, o.flops, t.name, t.bytes, t.storage, t.role, t.dtype, trace.uses);
  state.counters["op_tensors_uses_bytes"] = alone / operators;
  state.counters["trace_bytes"] = (alone + bytes_of(trace.edges, trace.memory_events, trace.collectives)) / operators;
}

void generate_and_replay(benchmark::State& state, const char* model, std::int64_t sequence, std::int64_t micro_batches,
                         const char* hardware) {
  const Scenario wanted = scenario(model, sequence, micro_batches, hardware);
  std::int64_t ops = 0;
  for (auto _ : state) {
    const LoadedScenario loaded = load(wanted);
    const Result result = run(loaded);
    ops += static_cast<std::int64_t>(loaded.trace.ops.size());
    count_bytes(state, loaded.trace);
    benchmark::DoNotOptimize(result.step_time);
  }
  state.SetItemsProcessed(ops);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}
BENCHMARK_CAPTURE(generate_and_replay, gpt3_175b_64, "gpt3-175b", 2048, 64, "dgx-a100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate_and_replay, llama_405b_512, "llama-3.1-405b", 8192, 512, "dgx-h100")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void figures_alone(benchmark::State& state) {
  Scenario wanted = scenario("llama-3.1-405b", 8192, state.range(0), "dgx-h100");
  wanted.training.data_parallel = 8;
  wanted.training.zero_stage = 1;
  wanted.training.recompute = Recompute::full;
  std::int64_t ops = 0;
  for (auto _ : state) {
    const BriefRun brief = run_briefly(wanted);
    ops = static_cast<std::int64_t>(brief.loaded.trace.ops.size());
    benchmark::DoNotOptimize(brief.run.result.step_time);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  state.counters["ops_generated"] = static_cast<double>(ops);
}
BENCHMARK(figures_alone)->Arg(64)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
