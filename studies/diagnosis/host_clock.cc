#include "studies/diagnosis/host_clock.h"

#include <algorithm>

namespace spillway::studies {

HostClock::HostClock(const Trace& trace, const Result& result, LaneId thread) {
  const Ops& ops = trace.ops;
  for (std::size_t i = 0; i < std::min(ops.size(), result.op_start.size()); ++i) {
    if (ops.lane[i] != thread || ops.start[i] == unknown_time || ops.duration[i] == unknown_time) continue;
    if (result.op_start[i] == unknown_time || result.op_end[i] == unknown_time) continue;
    anchors_.push_back({ops.start[i].count(), result.op_start[i].count()});
    anchors_.push_back({(ops.start[i] + ops.duration[i]).count(), result.op_end[i].count()});
  }
  std::stable_sort(anchors_.begin(), anchors_.end(),
                   [](const Anchor& a, const Anchor& b) { return a.recorded < b.recorded; });
  std::int64_t reached = 0;
  for (Anchor& anchor : anchors_) anchor.replayed = reached = std::max(reached, anchor.replayed);
}

std::int64_t HostClock::replayed(std::int64_t recorded) const {
  const auto after =
      std::upper_bound(anchors_.begin(), anchors_.end(), recorded,
                       [](std::int64_t wanted, const Anchor& anchor) { return wanted < anchor.recorded; });
  if (after == anchors_.begin()) return std::max<std::int64_t>(0, after->replayed - (after->recorded - recorded));
  const Anchor& before = *(after - 1);
  if (after == anchors_.end()) return before.replayed + (recorded - before.recorded);
  const double part =
      static_cast<double>(recorded - before.recorded) / static_cast<double>(after->recorded - before.recorded);
  return before.replayed + static_cast<std::int64_t>(part * static_cast<double>(after->replayed - before.replayed));
}

}  // namespace spillway::studies
