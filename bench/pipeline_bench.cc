// Building and executing pipeline schedules: every named one at 16 stages and 64 micro-batches, and the largest that is
// asked for, 64 stages, 8 chunks, 1,024 micro-batches; the search at 8 stages.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "models/pipeline/named_schedules.h"
#include "planners/pipeline/pipeline_executor.h"
#include "planners/pipeline/pipeline_memory.h"
#include "planners/pipeline/schedule_search.h"

namespace spillway::bench {
namespace {

// One device's share of a micro-batch: F 1, B 1, W 1 in millionths.
PipelineRequest timed(std::string_view name, std::int64_t p, std::int64_t m, std::int64_t v) {
  PipelineRequest request;
  request.devices = p;
  request.micro_batches = m;
  request.chunks = v;
  request = resolve_request(name, request);
  const Ticks part = 1'000'000 / request.chunks;
  request.times.positions = {{part, part, part, part}};
  request.times.transfer = 20'000;
  request.times.offload = request.times.reload = part;
  return request;
}

void play(benchmark::State& state, std::string_view name, std::int64_t p, std::int64_t m, std::int64_t v) {
  const PipelineRequest request = timed(name, p, m, v);
  std::size_t operations = 0;
  double bubble = 0, peak = 0;
  for (auto _ : state) {
    const PipelinePlan plan = build_schedule(name, request);
    const PipelineTimeline timeline = execute_plan(plan, request.times);
    const std::vector<double> peaks = activation_peaks(plan, timeline);
    operations = plan.operations();
    bubble = timeline.bubble_of_makespan();
    peak = *std::max_element(peaks.begin(), peaks.end());
  }
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["bubble"] = bubble;
  state.counters["peak"] = peak;
}

void search(benchmark::State& state) {
  SearchRequest request;
  request.devices = 8;
  request.micro_batches = 16;
  request.times.positions = {{1'000'000, 1'000'000, 700'000, 1'000'000}};
  request.times.transfer = 20'000;
  request.limits = {static_cast<double>(state.range(0))};
  Ticks makespan = 0, named = 0;
  for (auto _ : state) {
    const SearchResult result = search_schedule(request);
    makespan = result.timeline.makespan;
    named = result.best_named_makespan;
  }
  state.counters["makespan"] = static_cast<double>(makespan) / 1e6;
  state.counters["best_named"] = static_cast<double>(named) / 1e6;
}
BENCHMARK(search)->Arg(4)->Arg(6)->Arg(8)->Arg(12)->Unit(benchmark::kMillisecond);

void add_schedules() {
  for (const NamedSchedule& named : named_schedules())
    benchmark::RegisterBenchmark((std::string(named.name) + "/16/64").c_str(), [name = named.name](
                                                                                   benchmark::State& state) {
      play(state, name, 16, 64, 0);
    })->Unit(benchmark::kMillisecond);
  for (const char* name : {"interleaved", "chronos", "gis"})
    benchmark::RegisterBenchmark((std::string(name) + "/64/1024/8").c_str(), [name](benchmark::State& state) {
      play(state, name, 64, 1024, 8);
    })->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace spillway::bench

int main(int argc, char** argv) {
  spillway::bench::add_schedules();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
