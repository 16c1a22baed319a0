// Laying out made-up training steps: placements per second of one packing, and how far above the most ever alive the
// answer is. With the argument --write COUNT SEED MICRO_BATCHES it writes such a step as a table instead.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/layout_workload.h"
#include "planners/layout/layout_sections.h"

namespace spillway::bench {
namespace {

void packing(benchmark::State& state) {
  const std::vector<LayoutBuffer> buffers = bench::training_step(state.range(0), 1, state.range(1));
  LayoutOptions options;
  options.effort = 1;  // one pass
  LayoutResult result;
  for (auto _ : state) result = solve_layout(buffers, options);
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["gap_ppm"] =
      1e6 * static_cast<double>(result.height - result.lower_bound) / static_cast<double>(result.lower_bound);
}
BENCHMARK(packing)
    ->Args({1000, 1})
    ->Args({10'000, 1})
    ->Args({100'000, 1})
    ->Args({100'000, 8})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(packing)->Args({1'000'000, 1})->Args({1'000'000, 8})->Unit(benchmark::kMillisecond)->Iterations(1);

void sections(benchmark::State& state) {
  const std::vector<LayoutBuffer> buffers = bench::training_step(state.range(0), 1);
  for (auto _ : state) benchmark::DoNotOptimize(sections_of(buffers));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sections)->Arg(100'000)->Unit(benchmark::kMillisecond);

void write_table(std::int64_t count, std::uint64_t seed, std::int64_t micro_batches) {
  std::puts("id,lower,upper,size");
  std::int64_t id = 0;
  for (const LayoutBuffer& buffer : bench::training_step(count, seed, micro_batches))
    std::printf("%lld,%lld,%lld,%lld\n", static_cast<long long>(id++), static_cast<long long>(buffer.lower),
                static_cast<long long>(buffer.upper), static_cast<long long>(buffer.size));
}

}  // namespace
}  // namespace spillway::bench

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--write") {
    spillway::bench::write_table(std::atoll(argv[2]), static_cast<std::uint64_t>(std::atoll(argv[3])),
                                 std::atoll(argv[4]));
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
