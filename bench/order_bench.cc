// Ordering made-up training steps: seconds, and how far the peak is above the bound and below the program's order.
#include <benchmark/benchmark.h>

#include "bench/order_workload.h"
#include "planners/order/order_solver.h"

namespace spillway::bench {
namespace {

void order(benchmark::State& state) {
  const OrderGraph graph = bench::TrainingGraph(static_cast<std::size_t>(state.range(0)), 1).take();
  OrderResult result;
  for (auto _ : state) result = solve_order(graph);
  const auto bound = static_cast<double>(result.lower_bound_bytes);
  state.counters["operators"] = static_cast<double>(graph.operators.size());
  state.counters["over_bound_percent"] = 100 * (static_cast<double>(result.peak_bytes) / bound - 1);
  state.counters["program_over_bound_percent"] =
      100 * (static_cast<double>(result.program_order_peak_bytes) / bound - 1);
}
BENCHMARK(order)->Arg(20)->Arg(200)->Arg(2175)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
