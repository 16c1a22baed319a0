// Operators a second of a capture in which nothing repeats exactly, once it is read: its replay, and what `run` makes
// of it besides (the diagnosis). The capture is the reader's benchmark's, its steps told apart by their recorded times.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/large_kineto.h"
#include "scenario/scenario_run.h"
#include "studies/diagnosis/step_diagnosis.h"

namespace spillway::bench {
namespace {

class Capture {
 public:
  explicit Capture(std::uint64_t bytes) {
    std::string name = std::filesystem::temp_directory_path() / "spillway-capture-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the capture: " + name);
    const std::filesystem::path folder = name;
    write_large_kineto(folder / "trace.json", bytes);
    Scenario scenario;
    scenario.trace = folder / "trace.json";
    loaded_ = load(scenario);
    std::filesystem::remove_all(folder);
  }
  [[nodiscard]] const LoadedScenario& loaded() const { return loaded_; }
  [[nodiscard]] auto ops() const { return static_cast<std::int64_t>(loaded_.trace.ops.size()); }

 private:
  LoadedScenario loaded_;
};

void captured_replay(benchmark::State& state) {
  const Capture capture(static_cast<std::uint64_t>(state.range(0)) * 1'000'000);
  for (auto _ : state) {
    const Result result = run(capture.loaded());
    benchmark::DoNotOptimize(result.fingerprint);
  }
  state.SetItemsProcessed(state.iterations() * capture.ops());
}
BENCHMARK(captured_replay)->ArgName("MB")->Arg(40)->Arg(400)->Unit(benchmark::kMillisecond);

void captured_diagnosis(benchmark::State& state) {
  const Capture capture(static_cast<std::uint64_t>(state.range(0)) * 1'000'000);
  const Result result = run(capture.loaded());
  for (auto _ : state) {
    const studies::StepDiagnosis found =
        studies::diagnose_step(capture.loaded(), result, nullptr, 10, studies::DiagnosisDepth::short_form);
    benchmark::DoNotOptimize(found.gpu_busy);
  }
  state.SetItemsProcessed(state.iterations() * capture.ops());
}
BENCHMARK(captured_diagnosis)->ArgName("MB")->Arg(40)->Arg(400)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace spillway::bench

BENCHMARK_MAIN();
