// Screening a sweep: every point of the wide GPT-3 sweep under tensor parallelism 8 and pipelines of 8 and 16, probes
// included, on one thread. `valid` counts points that no condition leaves out, a CPU second.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/read_file.h"
#include "studies/sweep/sweep_file.h"
#include "studies/sweep/sweep_task.h"

namespace spillway::bench {
namespace {

studies::SweepFile cut_sweep() {
  const std::string folder = SPILLWAY_SOURCE_ROOT "/cli/sweeps/";
  auto json = nlohmann::ordered_json::parse(read_file_as_it_is(folder + "gpt3-175b-512xa100-wide.json"));
  for (auto& axis : json["axes"]) {
    if (axis["name"] == "t") axis["from"] = 8;
    if (axis["name"] == "p") axis["values"] = {8, 16};
  }
  return studies::parse_sweep(json.dump(), "sweep.json", folder);
}

void screen(benchmark::State& state) {
  const studies::SweepFile file = cut_sweep();
  const std::int64_t blocks = (file.points() + studies::sweep_block_points - 1) / studies::sweep_block_points;
  double valid = 0;
  for (auto _ : state) {
    studies::SweepWorker worker(file);
    for (std::int64_t block = 0; block < blocks; ++block)
      valid += static_cast<double>(studies::parse_sweep_block(worker.record({false, block})).screened);
  }
  state.counters["valid"] = benchmark::Counter(valid, benchmark::Counter::kIsRate);
}
BENCHMARK(screen)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
