// Finds a trace's lanes by what they are, however many there are.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "traces/trace.h"

namespace spillway::traces {

// Index of one trace, to which no one else adds lanes meanwhile; those it has already are known.
class LaneIndex {
 public:
  explicit LaneIndex(Trace& trace);

  // The first lane of that (kind, rank, device, number); none: there is no such. O(log lanes).
  [[nodiscard]] LaneId find(const Lane& wanted) const;
  // Finds it or appends it. Throws InputError where there are more lanes than ids.
  LaneId lane(const Lane& wanted);

 private:
  using Key = std::tuple<LaneKind, std::uint16_t, std::int16_t, std::int64_t>;
  static Key key(const Lane& lane) { return {lane.kind, lane.rank, lane.device, lane.number}; }

  Trace& trace_;
  std::map<Key, LaneId> lanes_;
};

// Without a look whether there is one like it. Throws InputError where there are more lanes than ids.
LaneId append_lane(Trace& trace, const Lane& lane);

}  // namespace spillway::traces
