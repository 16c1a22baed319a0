#include "sim/pictures/reserved_parts.h"

#include <algorithm>
#include <utility>

namespace spillway::sim {

ReservedParts reserved_parts(const PoolState& state) {
  constexpr std::int64_t step = 512;
  ReservedParts parts;
  for (const SegmentState& segment : state.segments) {
    const auto begin = state.blocks.begin() + segment.first_block;
    const auto end = begin + segment.block_count;
    const bool is_used =
        std::any_of(begin, end, [](const MemoryBlock& block) { return block.state != BlockState::inactive; });
    for (auto block = begin; block != end; ++block) {
      if (block->state == BlockState::pending_free) {
        parts.pending += block->size;
      } else if (block->state == BlockState::inactive) {
        Bytes& part = is_used ? (segment.large ? parts.partly_used_large : parts.partly_used_small)
                              : (segment.large ? parts.cached_large : parts.cached_small);
        part += block->size;
      } else {
        const Bytes requested = std::min(block->requested, block->size);
        const Bytes rounded = std::min(Bytes((requested.count() + step - 1) / step * step), block->size);
        parts.requested += requested;
        parts.rounding += rounded - requested;
        parts.slack += block->size - rounded;
      }
    }
  }
  return parts;
}

ReservedParts parts_at_reserved_peak(const Trace& trace, const AllocationStreamOptions& options) {
  AllocationStreamOptions run = options;
  run.keep_rows = run.repeat = false;
  run.keep_totals = true;
  const AllocationStreamResult whole = replay_allocation_stream(trace, run);
  std::pair most{whole.initial.reserved, whole.initial.allocated};
  run.state_after = AllocationStreamOptions::before_all;
  for (const HeldMemory& held : whole.held) {
    if (std::pair(held.reserved, held.allocated) <= most) continue;
    most = {held.reserved, held.allocated};
    run.state_after = held.event;
  }
  run.keep_totals = false;
  return reserved_parts(replay_allocation_stream(trace, run).wanted_state);
}

}  // namespace spillway::sim
