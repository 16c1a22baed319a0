// Planning a made-up run of a mixture of experts with each algorithm. With the argument --write LAYERS MICRO_BATCHES
// EXPERTS SEED it writes such a run as a log instead.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/stalloc_workload.h"
#include "planners/stalloc/stalloc_plan.h"

namespace spillway::bench {
namespace {

void planning(benchmark::State& state) {
  bench::MoeRun run;
  run.micro_batches = static_cast<int>(state.range(1));
  const MemoryProfile profile = read_memory_log(bench::moe_log(run), "log");
  StallocOptions options;
  options.algorithm = static_cast<StallocAlgorithm>(state.range(0));
  StallocPlan made;
  for (auto _ : state) made = plan_stalloc(profile, options);
  state.counters["requests"] = static_cast<double>(profile.requests.size());
  state.counters["gap_ppm"] = 1e6 * static_cast<double>((made.plan.pool - made.lower_bound).count()) /
                              static_cast<double>(made.lower_bound.count());
}
BENCHMARK(planning)->ArgsProduct({{0, 1, 2}, {8, 64}})->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace spillway::bench

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--write") {
    spillway::bench::MoeRun run{std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]),
                                static_cast<std::uint64_t>(std::atoll(argv[5]))};
    std::fputs(spillway::bench::moe_log(run).c_str(), stdout);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
