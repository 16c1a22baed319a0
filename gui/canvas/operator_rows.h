// CPU operators and annotations of a capture, at the times that a replay gives the host calls around them.
//
//   recorded   |--aten::linear--------------|          a host thread's calls: anchors, at both of their ends
//                 call 1       call 2
//   replayed   |--aten::linear------------------|      in between: in proportion, so that what nests goes on nesting
//                 call 1           call 2
#pragma once

#include <cstdint>
#include <vector>

#include "gui/canvas/timeline_scene.h"

namespace spillway::gui {

inline constexpr std::size_t most_operator_rows = 5;  // deeper ones are left out

// Rows of one host thread, the outermost first. Their lane is none; their ids are those of spans (span_id()). Colours
// follow the phase of the work launched inside. Empty when the thread has no spans, or no call that was recorded and
// replayed. parents: span_parents(trace). O(ops + spans log spans).
std::vector<SceneLane> operator_rows(const Trace& trace, const Result& result, LaneId thread,
                                     const std::vector<SpanId>& parents);

}  // namespace spillway::gui
