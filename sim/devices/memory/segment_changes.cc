#include "sim/devices/memory/segment_changes.h"

namespace spillway::sim {

HeldSegments segments_of(const PoolState& state) {
  HeldSegments segments;
  for (const SegmentState& segment : state.segments) segments[segment.address] = {segment.total, segment.expandable};
  return segments;
}

void note_segment_changes(std::uint32_t event, const HeldSegments& before, const HeldSegments& now,
                          std::vector<SegmentChange>& changes) {
  const auto note = [&](bool taken, bool expandable, Addr address, Bytes bytes) {
    const MemoryAction action = expandable ? (taken ? MemoryAction::segment_map : MemoryAction::segment_unmap)
                                           : (taken ? MemoryAction::segment_allocate : MemoryAction::segment_free);
    changes.push_back({event, action, address, bytes});
  };
  const auto total_in = [](const HeldSegments& segments, Addr address) {
    const auto found = segments.find(address);
    return found == segments.end() ? Bytes(0) : found->second.first;
  };
  const auto behind = [](Addr address, Bytes bytes) {
    return Addr(address.count() + static_cast<std::uint64_t>(bytes.count()));
  };
  for (const auto& [address, segment] : before)
    if (const Bytes left = total_in(now, address); left < segment.first)
      note(false, segment.second, behind(address, left), segment.first - left);
  for (const auto& [address, segment] : now)
    if (const Bytes held = total_in(before, address); held < segment.first)
      note(true, segment.second, behind(address, held), segment.first - held);
}

}  // namespace spillway::sim
