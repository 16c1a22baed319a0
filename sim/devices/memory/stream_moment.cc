#include "sim/devices/memory/stream_moment.h"

#include <algorithm>

namespace spillway::sim {

bool StreamMoment::equals(const StreamMoment& other) const {
  const auto of_block = [](const MemoryBlock& x, const MemoryBlock& y) {
    return x.address == y.address && x.size == y.size && x.requested == y.requested && x.state == y.state;
  };
  const auto of_segment = [](const SegmentState& x, const SegmentState& y) {
    return x.address == y.address && x.total == y.total && x.stream == y.stream && x.large == y.large &&
           x.private_pool == y.private_pool && x.expandable == y.expandable;
  };
  const auto of_live = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.bytes == y.second.bytes && x.second.stream == y.second.stream &&
           x.second.place == y.second.place && x.second.size == y.second.size &&
           (x.second.place != Addr(0) || x.second.block == y.second.block || x.second.size > Bytes(0));
  };
  return std::equal(live.begin(), live.end(), other.live.begin(), other.live.end(), of_live) &&
         std::equal(state.segments.begin(), state.segments.end(), other.state.segments.begin(),
                    other.state.segments.end(), of_segment) &&
         std::equal(state.blocks.begin(), state.blocks.end(), other.state.blocks.begin(), other.state.blocks.end(),
                    of_block);
}

}  // namespace spillway::sim
