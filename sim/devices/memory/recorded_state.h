// Device memory before a capture's first event.
//
// A snapshot shows the segments and blocks at its end; its history is a ring buffer that may begin late. Undoing
// the history from the end gives the state at its beginning:
//
//   end state  <-- undo alloc: the block was free    <-- undo free: it was live    <-- ...  beginning
//
// This is not unique: a block allocated before the history and freed within it may own up to 1 MiB of unsplit slack
// that no record shows. Slack is assumed if the gap behind the block is too small for a block of the large pool. It is
// also assumed if the next allocation placed behind the live block leaves such a gap. Such blocks are counted.
//
// Kineto captures show no segments: blocks freed without an allocation, and the rest of the recorded total.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/devices/memory/memory_types.h"
#include "sim/devices/memory/torch_settings.h"
#include "traces/trace.h"

namespace spillway::sim {

// No device is larger: rows that claim more can't be used.
inline constexpr Bytes largest_plausible{std::int64_t{1} << 46};
constexpr bool is_plausible(Bytes bytes) { return bytes >= Bytes::zero() && bytes <= largest_plausible; }

struct RecordedState {
  PoolState state;                        // segments and blocks at the beginning; tiles exactly
  std::vector<MemoryBlock> loose_blocks;  // live at the beginning, in no known segment; by address
  std::vector<std::int64_t> loose_streams;
  Bytes unexplained{};                  // allocated at the beginning by the recorded total, in no block above
  std::uint64_t ambiguous_blocks = 0;   // blocks of assumed size, with a gap behind them
  std::uint64_t unusable_segments = 0;  // empty, overlapping, of implausible size
  bool has_segments = false;            // the capture shows segments this state was built from
};

// Events of other devices are skipped. O(events + blocks log blocks).
RecordedState recorded_state(const Trace& trace, std::int16_t device, const TorchSettings& settings);

// Whether the record can say anything of the time before a device's first event (`events`: indices in
// Trace::memory_events), but by freeing what it never allocated. O(events).
bool may_begin_empty(const Trace& trace, std::int16_t device, const std::vector<std::uint32_t>& events);

// Blocks alive at the record's end, and how many of them lie in `state` where they lay. O(blocks log blocks).
struct LiveBlocks {
  std::uint64_t recorded = 0, matched = 0;
};
LiveBlocks compare_live_blocks(const Trace& trace, std::int16_t device, const PoolState& state);

// A block from before the first event, as a policy that starts from live blocks alone is asked for it
// (AllocationRequest::before).
struct BlockBefore {
  Addr address{};
  Bytes bytes{};
  bool is_pending = false;  // freed already, but not reusable yet
};

// Address of resident memory without a known place: no process has such an address.
inline constexpr Addr unknown_place{std::uint64_t{1} << 48};

// In the order they are asked for in: those of segments by address, what has no place, the others.
std::vector<BlockBefore> blocks_before(const Trace& trace, std::int16_t device);

// Number of the lane a memory event or segment belongs to; 0 if unknown.
std::int64_t stream_number(const Trace& trace, LaneId lane);

}  // namespace spillway::sim
