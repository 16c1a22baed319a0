#include "gui/workspace/outcome.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/byte_source.h"
#include "base/parallel.h"
#include "gui/workspace/variant_figures.h"
#include "scenario/drawn_run.h"
#include "scenario/evaluator.h"
#include "scenario/reserve.h"
#include "scenario/scenario_memory.h"
#include "studies/diagnosis/memory_diagnosis.h"
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
    read.keep_stacks = true;
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

// Of the GPU that needs most memory; 0: none is known to.
std::uint16_t fullest_rank(const Trace& trace, const Result& result) {
  for (const Device& device : trace.devices)
    if (device.ordinal == result.memory.device && result.memory.known && device.rank < trace.rank_count)
      return device.rank;
  return 0;
}

// A rank's GPU; none: it has none, as in captures that don't say.
std::optional<std::int16_t> device_of(const Trace& trace, std::uint16_t rank) {
  for (const Device& device : trace.devices)
    if (device.rank == rank && device.ordinal >= 0) return device.ordinal;
  return std::nullopt;
}

// Steps of more ops are not drawn in program order: it takes as much memory again.
constexpr std::size_t most_issued = 500'000;

bool draws_issued(const Outcome& outcome) {
  return outcome.trace().has(Capability::times) && outcome.trace().ops.size() <= most_issued;
}

// The same lanes with every op at its place in program order.
void draw_issued(Outcome& outcome) {
  const Trace& trace = outcome.trace();
  if (!draws_issued(outcome)) return;
  outcome.issue_places = issue_places(trace);
  Result issued;
  issued.ranks = outcome.result().ranks;
  issued.replayed = Picos(static_cast<std::int64_t>(trace.ops.size()));
  issued.op_start.reserve(trace.ops.size());
  issued.op_end.reserve(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const bool is_replayed = i < outcome.result().op_start.size() && outcome.result().op_start[i] != unknown_time;
    issued.op_start.push_back(is_replayed ? Picos(outcome.issue_places[i]) : unknown_time);
    issued.op_end.push_back(is_replayed ? Picos(outcome.issue_places[i] + 1) : unknown_time);
  }
  outcome.issued = timeline_scene(trace, issued);
  outcome.issued_pipeline = pipeline_scene(trace, issued);
}

void draw_lanes(Outcome& outcome) {
  outcome.timeline = timeline_scene(outcome.trace(), outcome.result());
  outcome.pipeline = pipeline_scene(outcome.trace(), outcome.result());
  outcome.work = all_work(outcome.timeline, outcome.trace(), outcome.result()).rows();
}

void draw_counters(const Outcome& outcome, RankView& view) {
  if (outcome.result().op_start.empty()) return;
  for (studies::Counter& counter : studies::counters_of(outcome.trace(), outcome.result(), view.rank))
    view.counters.emplace_back(std::move(counter));
}

bool has_stacks(const Trace& trace) {
  return std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                     [](const MemoryEvent& event) { return event.stack != no_stack; });
}

// A snapshot says no role of its blocks: they are told apart by the program's lines that asked for them.
void draw_snapshot(const Outcome& outcome, std::optional<std::int16_t> device, RankView& view) {
  AllocationStreamOptions options = allocations_of(outcome.loaded, outcome.run, device);
  options.keep_rows = options.keep_totals = true;
  options.repeat = false;
  const Trace& trace = outcome.trace();
  MemoryPicture picture = memory_picture_on(
      trace, replay_allocation_stream(trace, options), {}, false, 0,
      [&trace](std::uint32_t event) { return studies::own_place(trace, trace.memory_events[event].stack); });
  picture.title = outcome.result().title;
  picture.capacity = outcome.result().memory.capacity;
  view.memory = memory_scene(std::move(picture), true);
}

void draw_memory(const Outcome& outcome, std::optional<std::int16_t> device, RankView& view) {
  const Trace& all = outcome.trace();
  if (!all.has(Capability::times) && outcome.result().memory.known && has_stacks(all))
    return draw_snapshot(outcome, device, view);
  std::vector<MemoryClock> clocks = {MemoryClock::gpu, MemoryClock::host};
  if (draws_issued(outcome)) clocks.push_back(MemoryClock::program);
  std::vector<MemoryPicture> pictures = step_memory_on(outcome.loaded, outcome.run, clocks, device);
  const std::array<std::shared_ptr<const MemoryScene>*, 3> into = {&view.memory, &view.memory_on_host,
                                                                   &view.memory_issued};
  in_parallel(pictures.size(), [&](std::size_t i) { *into[i] = memory_scene(std::move(pictures[i])); });
}

void go_on(const Progress& progress, const char* part) {
  if (progress && !progress(part, -1)) throw Cancelled();
}

}  // namespace

std::shared_ptr<Outcome> simulate(const ScenarioText& scenario, const ReadRange& range,
                                  std::shared_ptr<const CapturedTrace>& captured, const Progress& progress) {
  auto outcome = std::make_shared<Outcome>();
  outcome->scenario = scenario;
  Scenario parsed = parse_scenario(scenario.text, scenario.name, scenario.folder);
  if (parsed.title.empty()) parsed.title = scenario.name;
  const bool in_part = is_drawn_in_part(parsed);
  bool knows_shortage = in_part;
  if (in_part) {
    go_on(progress, "replaying");
    BriefRun brief = run_briefly(parsed);
    outcome->loaded = std::move(brief.loaded);
    outcome->run = std::move(brief.run);
  } else {
    outcome->loaded = load_with(parsed, range, captured, progress);
    go_on(progress, "replaying");
    knows_shortage = !outcome->loaded.trace.has(Capability::times);
    outcome->run =
        knows_shortage ? run_memory(outcome->loaded) : Evaluator(outcome->loaded, Shortage::left_out).take_run();
  }
  take_replayed_order(outcome->loaded, outcome->run);
  go_on(progress, "drawing");
  outcome->fullest.rank = fullest_rank(outcome->trace(), outcome->result());
  Bytes short_of = outcome->result().memory.short_of;
  const std::array<std::function<void(Outcome&)>, 6> parts = {
      [&short_of, knows_shortage](Outcome& made) {
        if (!knows_shortage) short_of = shortage_of(made.loaded, made.run, true).value();
      },
      [](Outcome& made) { draw_memory(made, {}, made.fullest); },
      [](Outcome& made) { draw_counters(made, made.fullest); },
      draw_lanes,
      draw_issued,
      [](Outcome& made) { made.roofline = roofline(made.loaded, made.run); }};
  in_parallel(parts.size(), [&](std::size_t i) { parts[i](*outcome); });
  outcome->run.result.memory.short_of = short_of;
  outcome->figures = std::make_shared<const VariantFigures>(variant_figures(*outcome));
  return outcome;
}

bool Outcome::has_axis(MemoryClock axis) const {
  if (timeline.empty()) return axis == MemoryClock::program;
  return axis != MemoryClock::program || !issued.empty();
}

TrackScene Outcome::tracks(MemoryClock axis, const RankView* view) const {
  const RankView& of = view != nullptr ? *view : fullest;
  TrackScene scene;
  scene.trace = &trace();
  scene.result = &result();
  // A snapshot doesn't say whose memory it is of.
  const bool known = !loaded.scenario.hardware.empty() || trace().has(Capability::times);
  const auto& gpu = loaded.hardware.gpu;
  if (known) scene.device = gpu.title.empty() ? gpu.name : gpu.title;
  const bool by_order = axis == MemoryClock::program && !timeline.empty();
  scene.lanes = by_order ? &issued : &timeline;
  scene.passes = by_order ? &issued_pipeline : &pipeline;
  scene.rank = of.rank;
  if (!by_order) scene.counters = &of.counters;
  scene.memory = memory(axis, view).get();
  return scene;
}

std::shared_ptr<const MemoryScene> Outcome::memory(MemoryClock axis, const RankView* view) const {
  const RankView& of = view != nullptr ? *view : fullest;
  if (axis == MemoryClock::program && !timeline.empty()) return of.memory_issued;
  return axis == MemoryClock::host ? of.memory_on_host : of.memory;
}

TimeRange Outcome::whole(MemoryClock axis) const {
  const TrackScene scene = tracks(axis);
  return scene.lanes->empty() && scene.memory != nullptr ? scene.memory->whole : scene.lanes->whole;
}

RankView rank_view(const Outcome& outcome, std::uint16_t rank) {
  RankView view;
  view.rank = rank;
  if (const auto device = device_of(outcome.trace(), rank)) draw_memory(outcome, device, view);
  draw_counters(outcome, view);
  return view;
}

void use_whole(const Outcome& outcome, const std::function<void(const LoadedScenario&, const ScenarioRun&)>& use) {
  if (micro_batches_left_out(outcome.loaded) == 0) return use(outcome.loaded, outcome.run);
  const LoadedScenario loaded = load(outcome.loaded.scenario);
  ScenarioRun run = run_traced(loaded);
  take_replayed_order(loaded, run);
  use(loaded, run);
}

Sensitivity find_sensitivity(const Outcome& outcome) {
  Sensitivity found;
  found.generation = outcome.generation;
  const MemoryResult& memory = outcome.result().memory;
  const bool stays = !outcome.loaded.scenario.offload.moves();
  use_whole(outcome, [&](const LoadedScenario& loaded, const ScenarioRun& run) {
    if (outcome.trace().has(Capability::times)) found.relaxations = explain(loaded, outcome.result());
    if (memory.known && !memory.on_host && stays)
      found.knobs = try_memory_knobs(loaded.trace, allocations_of(loaded, run));
  });
  return found;
}

}  // namespace spillway::gui
