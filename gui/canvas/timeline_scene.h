// A replay's timeline: lanes of spans with names, steps, and the passes of a pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/canvas/span_lane.h"
#include "sim/replay/result.h"
#include "studies/diagnosis/work_sum.h"
#include "traces/trace.h"

namespace spillway::gui {

struct SceneLane {
  std::string name;
  LaneId lane = LaneId::none;  // none: operators of the lane above
  SpanLane spans;              // id: OpId of the trace, span_id(), or of a pipeline's row the index into `passes`
};

// Ids of CPU operators and annotations (Trace::spans), apart from those of ops.
constexpr std::uint32_t span_bit = std::uint32_t{1} << 31;
constexpr std::uint32_t span_id(std::size_t span) { return static_cast<std::uint32_t>(span) | span_bit; }
constexpr bool is_span(std::uint32_t id) { return (id & span_bit) != 0; }
constexpr std::size_t span_of(std::uint32_t id) { return id & ~span_bit; }

struct SceneStep {
  std::string name;
  TimeRange range;
};

// A micro-batch on a stage of a pipeline.
struct ScenePass {
  std::string name;  // "3 backward"
};

struct TimelineScene {
  std::vector<SceneLane> lanes;
  std::vector<SceneStep> steps;
  std::vector<ScenePass> passes;  // of a pipeline's rows
  TimeRange whole;
  [[nodiscard]] bool empty() const { return lanes.empty(); }
};

// Every op that was replayed, by rank, host threads with their operators (operator_rows.h) before streams before
// communication and storage. O(n log n).
TimelineScene timeline_scene(const Trace& trace, const Result& result);
// One row per rank, of its passes (studies/diagnosis/passes.h).
TimelineScene pipeline_scene(const Trace& trace, const Result& result);

// Work within a range of a scene's lanes, without rows of operators (timeline_scene of the same trace). lanes: places
// in scene.lanes; null: all. O(ops in the range).
studies::WorkSum work_in(const TimelineScene& scene, const Trace& trace, TimeRange range,
                         const std::vector<std::size_t>* lanes = nullptr);
// All work of the step, with what is not drawn of it (scenario/drawn_run.h).
studies::WorkSum all_work(const TimelineScene& scene, const Trace& trace, const Result& result);

// Ops with `words` in their name, in that of an operator or annotation around them, or, for copies and storage, in that
// of a tensor they move. Ignores case; ascending (OpId order is host order). O(ops + uses + names).
std::vector<std::uint32_t> find_ops(const Trace& trace, const std::string& words);

// Ops of exactly that name, ascending.
std::vector<std::uint32_t> ops_named(const Trace& trace, const std::string& name);

}  // namespace spillway::gui
