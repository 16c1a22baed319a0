#include "traces/snapshot_state.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spillway {
namespace {

using Place = std::pair<std::int16_t, std::uint64_t>;  // device, address
using Blocks = std::map<Place, InitialMemory::Block>;
using Segments = std::map<Place, MemorySegment>;

std::uint64_t end_of(const MemorySegment& segment) {
  return segment.address.count() + static_cast<std::uint64_t>(segment.total.count());
}

// Takes [address, address + bytes) out of whatever segments hold it.
void remove_range(Segments& segments, std::int16_t device, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  auto at = segments.upper_bound(Place(device, address));
  if (at != segments.begin()) --at;
  while (at != segments.end() && (at->first.first < device || (at->first.first == device && at->first.second < end))) {
    const MemorySegment whole = at->second;
    if (at->first.first != device || end_of(whole) <= address) {
      ++at;
      continue;
    }
    at = segments.erase(at);
    const std::uint64_t begin = whole.address.count();
    if (begin < address) {
      MemorySegment left = whole;
      left.total = Bytes(static_cast<std::int64_t>(address - begin));
      segments.emplace(Place(device, begin), left);
    }
    if (end < end_of(whole)) {
      MemorySegment right = whole;
      right.address = Addr(end);
      right.total = Bytes(static_cast<std::int64_t>(end_of(whole) - end));
      at = segments.emplace(Place(device, end), right).first;
      ++at;
    }
  }
}

void undo(const MemoryEvent& event, Segments& segments, Blocks& blocks) {
  const Place place(event.device, event.address.count());
  const auto bytes = static_cast<std::uint64_t>(event.bytes.count());
  switch (event.action) {
    case MemoryAction::allocate:
      blocks.erase(place);
      return;
    case MemoryAction::free_completed: {
      const Bytes rounded((event.bytes.count() + 511) / 512 * 512);
      blocks[place] = {.block = {event.address, std::max(rounded, Bytes(512)), event.bytes, BlockState::allocated},
                       .device = event.device,
                       .stream = event.stream,
                       .size_is_exact = false};
      return;
    }
    case MemoryAction::segment_allocate:
    case MemoryAction::segment_map:
      return remove_range(segments, event.device, event.address.count(), bytes);
    case MemoryAction::segment_free:
    case MemoryAction::segment_unmap:
      segments[place] = {.address = event.address,
                         .total = event.bytes,
                         .device = event.device,
                         .stream = event.stream,
                         .large = event.bytes.count() > std::int64_t{2} << 20,
                         .expandable = event.action == MemoryAction::segment_unmap};
      return;
    case MemoryAction::free_requested:
    case MemoryAction::out_of_memory:
    case MemoryAction::snapshot:
      return;
  }
}

}  // namespace

InitialMemory rebuild_initial_memory(const Trace& trace) {
  Segments segments;
  Blocks blocks;
  for (const MemorySegment& segment : trace.memory_segments) {
    segments[Place(segment.device, segment.address.count())] = segment;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
      const MemoryBlock& block = trace.memory_blocks[segment.first_block + i];
      if (block.state == BlockState::inactive) continue;
      blocks[Place(segment.device, block.address.count())] = {
          .block = block, .device = segment.device, .stream = segment.stream, .size_is_exact = true};
    }
  }
  for (auto event = trace.memory_events.rbegin(); event != trace.memory_events.rend(); ++event)
    if (event->device >= 0) undo(*event, segments, blocks);
  InitialMemory result;
  for (const auto& entry : segments) {
    result.segments.push_back(entry.second);
    result.segments.back().first_block = result.segments.back().block_count = 0;
  }
  for (const auto& entry : blocks) result.blocks.push_back(entry.second);
  return result;
}

}  // namespace spillway
