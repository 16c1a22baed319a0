#include "gui/workspace/outcome.h"

#include <algorithm>
#include <utility>

#include "base/byte_source.h"
#include "scenario/scenario_memory.h"
#include "traces/formats/trace_part.h"
#include "traces/trace_link.h"

namespace spillway::gui {
namespace {

Trace read_part(const Scenario& scenario, const ReadRange& range, const ReadOptions& read) {
  constexpr double without_end = 1e15;
  const TracePart part{range.from_us.value_or(0), range.until_us.value_or(without_end)};
  Trace trace = read_trace_part(scenario.trace, part, read);
  if (!scenario.execution_trace.empty())
    trace = link_traces(std::move(trace), read_trace(scenario.execution_trace, read));
  return trace;
}

LoadedScenario load_with(const Scenario& scenario, const ReadRange& range,
                         std::shared_ptr<const CapturedTrace>& captured, const Progress& progress) {
  if (scenario.trace.empty()) return load(scenario);
  const std::string key = scenario.trace + "\n" + scenario.execution_trace + "\n" +
                          std::to_string(range.from_us.value_or(-1)) + "\n" +
                          std::to_string(range.until_us.value_or(-1));
  if (captured == nullptr || captured->key != key) {
    captured = nullptr;
    ReadOptions read;
    read.progress = [&progress](std::uint64_t done, std::uint64_t all) {
      return progress("reading", all > 0 ? static_cast<double>(done) / static_cast<double>(all) : -1);
    };
    auto fresh = std::make_shared<CapturedTrace>();
    fresh->key = key;
    fresh->trace = range.is_all() ? read_captured(scenario, read) : read_part(scenario, range, read);
    captured = std::move(fresh);
  }
  return load_captured(scenario, captured->trace);
}

void go_on(const Progress& progress, const char* part) {
  if (progress && !progress(part, -1)) throw Cancelled();
}

}  // namespace

std::shared_ptr<Outcome> simulate(const ScenarioText& scenario, const ReadRange& range,
                                  std::shared_ptr<const CapturedTrace>& captured, const Progress& progress) {
  auto outcome = std::make_shared<Outcome>();
  outcome->scenario = scenario;
  const Scenario parsed = parse_scenario(scenario.text, scenario.name, scenario.folder);
  outcome->loaded = load_with(parsed, range, captured, progress);
  if (outcome->loaded.scenario.title.empty()) outcome->loaded.scenario.title = scenario.name;
  go_on(progress, "replaying");
  const bool is_snapshot = !outcome->loaded.trace.has(Capability::times);
  outcome->run = is_snapshot ? run_memory(outcome->loaded) : run_traced(outcome->loaded);
  go_on(progress, "drawing");
  outcome->timeline = timeline_scene(outcome->trace(), outcome->result());
  outcome->pipeline = pipeline_scene(outcome->trace(), outcome->result());
  outcome->work = work_in(outcome->timeline, outcome->trace(), outcome->timeline.whole);
  go_on(progress, "drawing memory");
  if (auto picture = step_memory(outcome->loaded, outcome->run)) outcome->memory = memory_scene(std::move(*picture));
  outcome->roofline = roofline(outcome->loaded, outcome->run);
  return outcome;
}

Sensitivity find_sensitivity(const Outcome& outcome) {
  Sensitivity found;
  found.generation = outcome.generation;
  if (outcome.trace().has(Capability::times)) found.relaxations = explain(outcome.loaded, outcome.result());
  const MemoryResult& memory = outcome.result().memory;
  const bool stays = !outcome.loaded.scenario.offload.moves();
  if (memory.known && !memory.on_host && stays)
    found.knobs = try_memory_knobs(outcome.loaded.trace, allocations_of(outcome.loaded, outcome.run));
  return found;
}

}  // namespace spillway::gui
