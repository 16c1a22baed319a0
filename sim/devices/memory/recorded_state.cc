#include "sim/devices/memory/recorded_state.h"

#include <algorithm>
#include <map>
#include <optional>

namespace spillway::sim {
namespace {

Addr end_of(Addr address, Bytes size) { return address + Addr(static_cast<std::uint64_t>(size.count())); }
Bytes recorded_distance(Addr from, Addr to) { return Bytes(static_cast<std::int64_t>(to.count() - from.count())); }

struct LiveBlock {
  Bytes size{};  // zero: not recorded
  Bytes requested{};
  std::int64_t stream = 0;
  BlockState state = BlockState::allocated;
};

// A live block of the large pool with a gap behind it that may begin with its slack.
struct UnsureBlock {
  Addr block{};
  Addr end{};             // without slack
  Addr bound{};           // end of the gap
  std::size_t index = 0;  // in PoolState::blocks; the gap follows
  bool open = true;
  bool resolved = false;
};

// Undoes the history, newest event first.
class Rewinder {
 public:
  Rewinder(const Trace& trace, std::int16_t device, const TorchSettings& settings)
      : trace_(trace), device_(device), settings_(settings) {}

  RecordedState rewind() {
    load_end();
    for (auto event = trace_.memory_events.rbegin(); event != trace_.memory_events.rend(); ++event) {
      if (event->device == device_ && is_plausible(event->bytes)) undo(*event);
    }
    place_blocks();
    resolve_slack();
    unexplained_total();
    return std::move(result_);
  }

 private:
  void load_end() {
    for (const MemorySegment& segment : trace_.memory_segments) {
      if (segment.device != device_ || (segment.expandable && !settings_.expandable_segments)) continue;
      if (segment.total == Bytes::zero() || !is_plausible(segment.total)) {
        ++result_.unusable_segments;
        continue;
      }
      result_.has_segments = true;
      SegmentState state;
      state.address = segment.address;
      state.total = segment.total;
      state.stream = stream_number(trace_, segment.stream);
      state.large = segment.large;
      state.expandable = segment.expandable;
      segments_[segment.address] = state;
      const std::size_t end =
          std::min<std::size_t>(trace_.memory_blocks.size(), std::size_t{segment.first_block} + segment.block_count);
      for (std::size_t i = segment.first_block; i < end; ++i) {
        const MemoryBlock& block = trace_.memory_blocks[i];
        if (block.state != BlockState::inactive)
          live_[block.address] = {block.size, block.requested, state.stream, block.state};
      }
    }
  }

  void undo(const MemoryEvent& event) {
    switch (event.action) {
      case MemoryAction::allocate:
        live_.erase(event.address);
        break;
      case MemoryAction::free_completed:
        live_[event.address] = {known_size(event), event.bytes, stream_number(trace_, event.stream),
                                BlockState::pending_free};
        break;
      case MemoryAction::free_requested: {
        LiveBlock& block = live_[event.address];
        if (block.requested == Bytes::zero())
          block = {known_size(event), event.bytes, stream_number(trace_, event.stream), BlockState::allocated};
        block.state = BlockState::allocated;
        break;
      }
      case MemoryAction::segment_allocate:
        segments_.erase(event.address);
        break;
      case MemoryAction::segment_free: {
        SegmentState segment;
        segment.address = event.address;
        segment.total = event.bytes;
        segment.stream = stream_number(trace_, event.stream);
        segment.large = event.bytes > Bytes(2 << 20);
        segments_[event.address] = segment;
        result_.has_segments = true;
        break;
      }
      case MemoryAction::segment_map:
        if (settings_.expandable_segments) unmap(event.address, event.bytes);
        break;
      case MemoryAction::segment_unmap:
        if (settings_.expandable_segments) map(event);
        break;
      case MemoryAction::out_of_memory:
      case MemoryAction::snapshot:
        break;
    }
  }

  // Before this mapping the range ended sooner, began later, or was two or none.
  void unmap(Addr begin, Bytes size) {
    const auto above = segments_.upper_bound(begin);
    if (above == segments_.begin()) return;
    const auto at = std::prev(above);
    const SegmentState whole = at->second;
    const Addr end = end_of(begin, size), whole_end = end_of(at->first, whole.total);
    if (!whole.expandable || end > whole_end) return;
    segments_.erase(at);
    add_range(whole, whole.address, begin);
    add_range(whole, end, whole_end);
  }
  void map(const MemoryEvent& event) {
    SegmentState range;
    range.stream = stream_number(trace_, event.stream);
    range.expandable = true;
    range.large = event.bytes.count() % page_size(settings_, false).count() == 0;
    Addr begin = event.address, end = end_of(event.address, event.bytes);
    const auto next = segments_.find(end);
    if (next != segments_.end() && next->second.expandable) {
      range.large = next->second.large;
      end = end_of(end, next->second.total);
      segments_.erase(next);
    }
    const auto above = segments_.lower_bound(begin);
    if (above != segments_.begin()) {
      const auto before = std::prev(above);
      if (before->second.expandable && end_of(before->first, before->second.total) == begin) {
        begin = before->first;
        range.large = before->second.large;
        segments_.erase(before);
      }
    }
    add_range(range, begin, end);
    result_.has_segments = true;
  }
  void add_range(SegmentState range, Addr begin, Addr end) {
    if (begin >= end) return;
    range.address = begin;
    range.total = recorded_distance(begin, end);
    segments_[begin] = range;
  }

  [[nodiscard]] Bytes known_size(const MemoryEvent& event) const {
    return trace_.memory_size_is_requested ? Bytes::zero() : event.bytes;
  }

  void place_blocks() {
    auto block = live_.begin();
    Addr covered{};
    for (auto& [address, segment] : segments_) {
      const Addr end = end_of(address, segment.total);
      if (address < covered || end <= address) {
        ++result_.unusable_segments;
        continue;
      }
      covered = end;
      for (; block != live_.end() && block->first < address; ++block) add_loose(block->first, block->second);
      segment.first_block = static_cast<std::uint32_t>(result_.state.blocks.size());
      Addr at = address;
      for (; block != live_.end() && block->first < end; ++block) {
        const auto next = std::next(block);
        const Addr bound = next != live_.end() && next->first < end ? next->first : end;
        add_block(at, recorded_distance(at, block->first), Bytes{}, BlockState::inactive);
        const Bytes size = size_within(block->first, block->second, bound, segment.large);
        add_block(block->first, size, block->second.requested, block->second.state);
        at = end_of(block->first, size);
      }
      add_block(at, recorded_distance(at, end), Bytes{}, BlockState::inactive);
      segment.block_count = static_cast<std::uint32_t>(result_.state.blocks.size()) - segment.first_block;
      result_.state.segments.push_back(segment);
    }
    for (; block != live_.end(); ++block) add_loose(block->first, block->second);
  }

  // `bound`: the next live block or the segment's end.
  Bytes size_within(Addr address, const LiveBlock& block, Addr bound, bool large) {
    const Bytes room = recorded_distance(address, bound);
    if (block.size > Bytes::zero()) return std::min(block.size, room);
    const Bytes rounded = std::min(round_request(settings_, block.requested), room);
    const Bytes gap = room - rounded;
    if (!large || gap == Bytes::zero() || settings_.expandable_segments) return rounded;
    if (gap <= small_pool_limit || rounded >= settings_.max_split_size) return room;
    unsure_.push_back({address, end_of(address, rounded), bound, result_.state.blocks.size()});
    return rounded;
  }

  // The first allocation behind an unsure block while that lives starts where the free block there starts.
  void resolve_slack() {
    std::size_t open = unsure_.size();
    for (const MemoryEvent& event : trace_.memory_events) {
      if (open == 0) break;
      if (event.device != device_) continue;
      auto at = std::upper_bound(unsure_.begin(), unsure_.end(), event.address,
                                 [](Addr address, const UnsureBlock& unsure) { return address < unsure.block; });
      if (at == unsure_.begin()) continue;
      UnsureBlock& unsure = *--at;
      if (!unsure.open || event.address >= unsure.bound) continue;
      if (event.action == MemoryAction::allocate && event.address >= unsure.end) {
        give_slack(unsure, recorded_distance(unsure.end, event.address));
      } else if (event.address != unsure.block) {
        continue;
      }
      unsure.open = false;
      --open;
    }
    for (const UnsureBlock& unsure : unsure_) result_.ambiguous_blocks += unsure.resolved ? 0 : 1;
  }

  void give_slack(UnsureBlock& unsure, Bytes slack) {
    if (slack > small_pool_limit) return;
    MemoryBlock& owner = result_.state.blocks[unsure.index];
    MemoryBlock& gap = result_.state.blocks[unsure.index + 1];
    owner.size += slack;
    gap.address = end_of(gap.address, slack);
    gap.size -= slack;
    unsure.resolved = true;
  }

  void add_block(Addr address, Bytes size, Bytes requested, BlockState state) {
    if (size > Bytes::zero()) result_.state.blocks.push_back({address, size, std::min(requested, size), state});
  }

  void add_loose(Addr address, const LiveBlock& block) {
    const Bytes size = block.size > Bytes::zero() ? block.size : block.requested;
    if (size <= Bytes::zero()) return;
    result_.loose_blocks.push_back({address, size, block.requested, block.state});
    result_.loose_streams.push_back(block.stream);
  }

  // The recorded total before the first event that carries one, less what is known to be live.
  void unexplained_total() {
    for (const MemoryEvent& event : trace_.memory_events) {
      if (event.device != device_ || event.total_allocated < Bytes::zero()) continue;
      if (!is_plausible(event.total_allocated) || !is_plausible(event.bytes)) continue;
      if (event.action != MemoryAction::allocate && event.action != MemoryAction::free_requested) continue;
      Bytes before = event.total_allocated + (event.action == MemoryAction::allocate ? -event.bytes : event.bytes);
      for (const MemoryBlock& block : result_.loose_blocks) before -= block.size;
      for (const MemoryBlock& block : result_.state.blocks)
        before -= block.state == BlockState::inactive ? Bytes{} : block.size;
      result_.unexplained = std::clamp(before, Bytes::zero(), largest_plausible);
      return;
    }
  }

  const Trace& trace_;
  std::int16_t device_;
  const TorchSettings& settings_;
  std::map<Addr, SegmentState> segments_;
  std::map<Addr, LiveBlock> live_;
  std::vector<UnsureBlock> unsure_;  // by address
  RecordedState result_;
};

}  // namespace

std::int64_t stream_number(const Trace& trace, LaneId lane) {
  return index_of(lane) < trace.lanes.size() ? trace.lanes[index_of(lane)].number : 0;
}

std::vector<BlockBefore> blocks_before(const Trace& trace, std::int16_t device) {
  const RecordedState initial = recorded_state(trace, device, TorchSettings{});
  std::vector<BlockBefore> blocks;
  for (const MemoryBlock& block : initial.state.blocks)
    if (block.state != BlockState::inactive && block.requested > Bytes::zero())
      blocks.push_back({block.address, block.requested, block.state == BlockState::pending_free});
  if (initial.unexplained > Bytes::zero()) blocks.push_back({unknown_place, initial.unexplained, false});
  for (const MemoryBlock& block : initial.loose_blocks)
    if (is_plausible(block.size)) blocks.push_back({block.address, block.size, false});
  return blocks;
}

bool may_begin_empty(const Trace& trace, std::int16_t device, const std::vector<std::uint32_t>& events) {
  for (const MemorySegment& segment : trace.memory_segments)
    if (segment.device == device) return false;
  return std::all_of(events.begin(), events.end(), [&trace](std::uint32_t index) {
    const MemoryEvent& event = trace.memory_events[index];
    const bool is_block = event.action == MemoryAction::allocate || event.action == MemoryAction::free_requested ||
                          event.action == MemoryAction::free_completed;
    return is_block && event.total_allocated < Bytes::zero() && event.bytes > Bytes::zero();
  });
}

LiveBlocks compare_live_blocks(const Trace& trace, std::int16_t device, const PoolState& state) {
  if (trace.memory_segments.empty()) return {};
  std::map<Addr, Bytes> simulated;
  for (const MemoryBlock& block : state.blocks)
    if (block.state != BlockState::inactive) simulated[block.address] = block.size;
  LiveBlocks blocks;
  for (const MemorySegment& segment : trace.memory_segments) {
    if (segment.device != device) continue;
    const std::size_t end =
        std::min<std::size_t>(trace.memory_blocks.size(), std::size_t{segment.first_block} + segment.block_count);
    for (std::size_t i = segment.first_block; i < end; ++i) {
      const MemoryBlock& block = trace.memory_blocks[i];
      if (block.state == BlockState::inactive) continue;
      ++blocks.recorded;
      const auto found = simulated.find(block.address);
      if (found != simulated.end() && found->second == block.size) ++blocks.matched;
    }
  }
  return blocks;
}

RecordedState recorded_state(const Trace& trace, std::int16_t device, const TorchSettings& settings) {
  return Rewinder(trace, device, settings).rewind();
}

}  // namespace spillway::sim
