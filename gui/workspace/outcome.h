// The outcome of one state of the scenario: the replay, and its pictures made ready to be painted. Immutable, shared
// between the worker that made it and the views.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/canvas/memory_scene.h"
#include "gui/canvas/timeline_scene.h"
#include "gui/canvas/track_list.h"
#include "scenario/memory_knobs.h"
#include "scenario/scenario_run.h"
#include "sim/pictures/memory_clock.h"
#include "studies/offload/roofline.h"

namespace spillway::gui {

struct VariantFigures;

struct ScenarioText {
  std::string text, name, folder;  // as parse_scenario() takes them
  friend bool operator==(const ScenarioText&, const ScenarioText&) = default;
};

// The canvas's content of one GPU alone.
struct RankView {
  std::uint16_t rank = 0;
  std::shared_ptr<const MemoryScene> memory;  // on the GPU's clock; null: the trace has no memory events of it
  // On other axes: as the host asks for it; by the number of ops issued before, which has no times.
  std::shared_ptr<const MemoryScene> memory_on_host, memory_issued;
  std::vector<CounterLane> counters;
};

struct Outcome {
  std::uint64_t generation = 0;
  ScenarioText scenario;
  LoadedScenario loaded;
  ScenarioRun run;
  TimelineScene timeline, pipeline;
  std::vector<studies::WorkRow> work;      // of the whole time
  RankView fullest;                        // of the GPU that needs most memory
  TimelineScene issued, issued_pipeline;   // by the number of ops issued before
  std::vector<std::int64_t> issue_places;  // by op
  Roofline roofline;
  std::shared_ptr<const VariantFigures> figures;  // to be kept when the rest is not

  [[nodiscard]] bool has_axis(MemoryClock axis) const;
  // With the memory and counters of that view; null: `fullest`'s. The view outlives the scene.
  [[nodiscard]] TrackScene tracks(MemoryClock axis, const RankView* view = nullptr) const;
  [[nodiscard]] std::shared_ptr<const MemoryScene> memory(MemoryClock axis, const RankView* view = nullptr) const;
  [[nodiscard]] TimeRange whole(MemoryClock axis) const;
  [[nodiscard]] const Trace& trace() const { return run.trace(loaded); }
  [[nodiscard]] const Result& result() const { return run.result; }
};

// Gains of what would help: slower to find, and asked for separately.
struct Sensitivity {
  std::uint64_t generation = 0;
  std::vector<Relaxation> relaxations;
  std::vector<MemoryKnob> knobs;  // empty where the step offloads, or has no GPU memory
};

// A capture once read, so that what-ifs on it don't read it again.
struct CapturedTrace {
  std::string key;  // files and range it was read from
  Trace trace;
};

// part: what is being done, fraction: 0 .. 1 of it or -1. false: give up (Cancelled).
using Progress = std::function<bool(const std::string& part, double fraction)>;

// The part of a trace's time to read, in microseconds from its first event; none: from the beginning, to the end.
struct ReadRange {
  std::optional<double> from_us, until_us;
  [[nodiscard]] bool is_all() const { return !from_us && !until_us; }
  friend bool operator==(const ReadRange&, const ReadRange&) = default;
};

// Throws InputError, Cancelled (by progress, or by the thread's StopScope). `captured` is taken when it fits, and
// replaced when it doesn't. A step of very many micro-batches has the ops of a part of it (scenario/drawn_run.h).
std::shared_ptr<Outcome> simulate(const ScenarioText& scenario, const ReadRange& range,
                                  std::shared_ptr<const CapturedTrace>& captured, const Progress& progress);
Sensitivity find_sensitivity(const Outcome& outcome);
// With all ops of the outcome's step, as files have them: a step that is drawn in part is run once more.
void use_whole(const Outcome& outcome, const std::function<void(const LoadedScenario&, const ScenarioRun&)>& use);
// The view of any of the step's GPUs: its allocations are run once more. Throws Cancelled.
RankView rank_view(const Outcome& outcome, std::uint16_t rank);

}  // namespace spillway::gui
