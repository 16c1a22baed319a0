// The critical path of a replay: the chain of waits that ends with the last activity, walked backwards.
//
// At each activity the walk asks which constraint held its start: the lane (with its gap), an edge (with its lag) or
// the release time. Every interval on the way is put down to one Binding. The parts sum exactly to the time of the last
// end. If several constraints bind at the same instant the lane comes first, then edges in the order they were added; a
// lane that runs several at once last. O(activities + edges), and for each activity on the way that such a lane held,
// the activities before it there.
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "sim/replay/lowering.h"
#include "sim/replay/periodic_run.h"
#include "sim/replay/result.h"

namespace spillway::sim {

struct CriticalPath {
  // Without gaps from 0 to the last end; pieces of one op that follow each other alike are one.
  std::vector<PathStep> steps;
  // Binding::idle: kept time on the way that nothing in the capture explains, by the op that waited for it.
  std::vector<std::pair<OpId, Picos>> unexplained;
  // A folded step: the repeated part of the whole step's path, which is not among `steps`.
  std::array<Picos, binding_count> repeated{};
  bool is_told = true;  // false: the last work is none of the last of the whole one, and nothing is known
};

// start, end: by activity, as the executor recorded them. whole: of a folded step; the path is then the whole step's.
CriticalPath critical_path(const Trace& trace, const LoweredTrace& lowered, const ActivityGraph& graph,
                           std::span<const Picos> start, std::span<const Picos> end,
                           const PeriodicRun* whole = nullptr);
std::array<Picos, binding_count> sum_by_binding(std::span<const PathStep> path);

}  // namespace spillway::sim
