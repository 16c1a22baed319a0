#include "traces/lane_index.h"

#include "base/input_error.h"

namespace spillway::traces {

LaneIndex::LaneIndex(Trace& trace) : trace_(trace) {
  for (std::size_t i = 0; i < trace.lanes.size(); ++i) lanes_.try_emplace(key(trace.lanes[i]), static_cast<LaneId>(i));
}

LaneId LaneIndex::find(const Lane& wanted) const {
  const auto found = lanes_.find(key(wanted));
  return found == lanes_.end() ? LaneId::none : found->second;
}

LaneId LaneIndex::lane(const Lane& wanted) {
  const auto [found, is_new] = lanes_.try_emplace(key(wanted), LaneId::none);
  if (is_new) found->second = append_lane(trace_, wanted);
  return found->second;
}

LaneId append_lane(Trace& trace, const Lane& lane) {
  if (trace.lanes.size() >= index_of(LaneId::none))
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "",
                     "more than 65,534 threads and streams", "split the trace by rank or by time");
  trace.lanes.push_back(lane);
  return static_cast<LaneId>(trace.lanes.size() - 1);
}

}  // namespace spillway::traces
