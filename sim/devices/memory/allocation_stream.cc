#include "sim/devices/memory/allocation_stream.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "sim/devices/memory/recorded_state.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

// Stands for the streams whose use of a block the record shows only by a late free_completed.
constexpr std::int64_t unnamed_stream = std::numeric_limits<std::int64_t>::max();

class StreamReplay {
 public:
  StreamReplay(const Trace& trace, const AllocationStreamOptions& options)
      : trace_(trace), options_(options), pool_(make_memory_pool(options.pool)), torch_(pool_.as<TorchPool>()) {
    for (std::size_t i = 0; i < trace.memory_events.size(); ++i) {
      const MemoryEvent& event = trace.memory_events[i];
      if (event.device != options.device) continue;
      events_.push_back(static_cast<std::uint32_t>(i));
      has_completions_ = has_completions_ || event.action == MemoryAction::free_completed;
    }
  }

  AllocationStreamResult run() {
    if (events_.empty())
      throw InputError(trace_.provenance.empty() ? "" : trace_.provenance.front().file,
                       "device " + std::to_string(options_.device), "the trace has no memory events of this device",
                       "record with torch.cuda.memory._record_memory_history() or profile_memory=True");
    begin();
    result_.initial = held(0);
    if (options_.keep_totals) result_.held.reserve(events_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) {
      step(i);
      if (options_.keep_totals) result_.held.push_back(held(i));
    }
    return finish();
  }

 private:
  void begin() {
    pool_.keep_rows(options_.keep_rows);
    RecordedState initial =
        recorded_state(trace_, options_.device, torch_ != nullptr ? torch_->settings() : TorchSettings{});
    if (initial.unexplained > Bytes::zero()) add_resident(initial);
    const std::vector<BlockId> ids = pool_.restore(initial.state);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == BlockId::none) continue;
      const MemoryBlock& block = initial.state.blocks[i];
      if (block.state == BlockState::pending_free)
        free_pending(ids[i], block.address);
      else
        live_[block.address.count()] = ids[i];
    }
    result_.initial_segments = initial.state.segments.size();
    for (const SegmentState& segment : initial.state.segments) reserved_ += segment.total;
    for (std::size_t i = 0; i < initial.loose_blocks.size(); ++i) {
      const MemoryBlock& block = initial.loose_blocks[i];
      if (!is_plausible(block.size)) continue;
      const Allocation made = pool_.allocate({block.size, initial.loose_streams[i]});
      note_cost(made);
      live_[block.address.count()] = made.block;
    }
    result_.ambiguous_blocks = initial.ambiguous_blocks;
    result_.unusable_segments = initial.unusable_segments;
    result_.unexplained = initial.unexplained;
    has_segments_ = initial.has_segments;
    requested_ = Bytes(pool_.statistics().all().requested_bytes.current);
    if (has_segments_) result_.recorded.peak_reserved = reserved_;
    if (trace_.memory_size_is_requested) result_.recorded.peak_requested = requested_;
  }

  // One block in a segment of its own, at an address no process can have.
  static void add_resident(RecordedState& initial) {
    const Bytes size((initial.unexplained.count() + 511) / 512 * 512);
    const Addr address{std::uint64_t{1} << 48};
    SegmentState segment;
    segment.address = address;
    segment.total = size;
    segment.large = !is_small_request(size);
    segment.first_block = static_cast<std::uint32_t>(initial.state.blocks.size());
    segment.block_count = 1;
    initial.state.segments.push_back(segment);
    initial.state.blocks.push_back({address, size, initial.unexplained, BlockState::allocated});
  }

  void step(std::size_t i) {
    const MemoryEvent& event = at(i);
    if (!is_plausible(event.bytes)) {
      ++result_.unusable_events;
      return;
    }
    note_totals(event);
    switch (event.action) {
      case MemoryAction::allocate:
        allocate(i);
        break;
      case MemoryAction::free_requested:
        free_requested(i);
        break;
      case MemoryAction::free_completed:
        free_completed(i);
        break;
      case MemoryAction::segment_allocate:
      case MemoryAction::segment_map:
        segment_allocated(event);
        break;
      case MemoryAction::segment_free:
        segment_freed(event);
        break;
      case MemoryAction::segment_unmap:
        reserved_ -= event.bytes;
        break;
      case MemoryAction::out_of_memory:
        ++result_.recorded.out_of_memory;
        break;
      case MemoryAction::snapshot:
        break;
    }
  }

  void allocate(std::size_t i) {
    const MemoryEvent& event = at(i);
    if (event.bytes == Bytes::zero()) return;
    const auto old = live_.find(event.address.count());
    if (old != live_.end()) {
      ++result_.repeated_addresses;
      if (old->second != BlockId::none) pool_.free(old->second, time(i));
      live_.erase(old);
    }
    const std::size_t suggested = torch_ != nullptr ? torch_->suggestions() : 0;
    AllocationRequest request;
    request.bytes = event.bytes;
    request.stream = stream_number(trace_, event.stream);
    request.time = time(i);
    request.tag = events_[i];
    const Allocation made = pool_.allocate(request);
    note_cost(made);
    live_[event.address.count()] = made.block;
    ++result_.allocations;
    ++result_.addresses.total;
    if (!made.out_of_memory && made.address == event.address) ++result_.addresses.matched;
    if (torch_ != nullptr) {
      result_.segments.matched += suggested - torch_->suggestions();
      torch_->clear_suggestions();
    }
    requested_ += event.bytes;
    if (trace_.memory_size_is_requested)
      result_.recorded.peak_requested = std::max(result_.recorded.peak_requested, requested_);
  }

  void note_cost(const Allocation& made) {
    result_.cost.add(made.cost);
    if (!made.out_of_memory) return;
    if (result_.out_of_memory++ == 0) result_.first_out_of_memory = pool_.last_out_of_memory();
  }

  void free_requested(std::size_t i) {
    const MemoryEvent& event = at(i);
    const auto found = live_.find(event.address.count());
    if (found == live_.end()) {
      ++result_.ignored_frees;
      return;
    }
    const BlockId block = found->second;
    live_.erase(found);
    ++result_.frees;
    requested_ -= event.bytes;
    if (block == BlockId::none) return;
    const bool at_once = !has_completions_ || (i + 1 < events_.size() && at(i + 1).address == event.address &&
                                               at(i + 1).action == MemoryAction::free_completed);
    if (at_once)
      pool_.free(block, time(i));
    else
      free_pending(block, event.address);
  }

  void free_pending(BlockId block, Addr address) {
    pool_.record_stream(block, unnamed_stream);
    pool_.free(block, Picos{});
    pending_.emplace(address.count(), block);
  }

  void free_completed(std::size_t i) {
    const MemoryEvent& event = at(i);
    const auto pending = pending_.find(event.address.count());
    if (pending != pending_.end()) {
      pool_.complete_event(pending->second, unnamed_stream);
      pool_.process_events(time(i));
      pending_.erase(pending);
      return;
    }
    const bool requested_before =
        i > 0 && at(i - 1).address == event.address && at(i - 1).action == MemoryAction::free_requested;
    const auto found = live_.find(event.address.count());
    if (requested_before || found == live_.end()) return;
    ++result_.frees;  // some writers record completions only
    requested_ -= event.bytes;
    if (found->second != BlockId::none) pool_.free(found->second, time(i));
    live_.erase(found);
  }

  void segment_allocated(const MemoryEvent& event) {
    reserved_ += event.bytes;
    if (result_.recorded.peak_reserved < reserved_) result_.recorded.peak_reserved = reserved_;
    if (event.action != MemoryAction::segment_allocate) return;
    ++result_.segments.total;
    if (torch_ != nullptr && options_.use_recorded_segments) torch_->suggest_segment(event.address, event.bytes);
  }

  // The program's empty_cache() is not in the record, only what it gave back.
  void segment_freed(const MemoryEvent& event) {
    reserved_ -= event.bytes;
    if (torch_ != nullptr) torch_->release_segment(event.address);
  }

  void note_totals(const MemoryEvent& event) {
    RecordedMemory& recorded = result_.recorded;
    recorded.peak_allocated = std::max(recorded.peak_allocated, event.total_allocated);
    if (event.total_reserved < Bytes::zero()) return;
    recorded.peak_reserved = std::max(recorded.peak_reserved, event.total_reserved);
    recorded.final_reserved = event.total_reserved;
  }

  AllocationStreamResult finish() {
    result_.policy = pool_.name();
    result_.device = options_.device;
    result_.statistics = pool_.statistics();
    result_.fragmentation = fragmentation(result_.statistics);
    result_.segments_allocated = static_cast<std::uint64_t>(result_.statistics.device_mallocs);
    if (has_segments_) result_.recorded.final_reserved = reserved_;
    result_.final_state = pool_.state();
    result_.rows = pool_.rows();
    compare_final_blocks();
    return std::move(result_);
  }

  void compare_final_blocks() {
    std::map<Addr, Bytes> simulated;
    for (const MemoryBlock& block : result_.final_state.blocks) {
      if (block.state != BlockState::inactive) simulated[block.address] = block.size;
    }
    for (const MemorySegment& segment : trace_.memory_segments) {
      if (segment.device != options_.device) continue;
      const std::size_t end =
          std::min<std::size_t>(trace_.memory_blocks.size(), std::size_t{segment.first_block} + segment.block_count);
      for (std::size_t i = segment.first_block; i < end; ++i) {
        const MemoryBlock& block = trace_.memory_blocks[i];
        if (block.state == BlockState::inactive) continue;
        ++result_.final_blocks.total;
        const auto found = simulated.find(block.address);
        if (found != simulated.end() && found->second == block.size) ++result_.final_blocks.matched;
      }
    }
  }

  [[nodiscard]] HeldMemory held(std::size_t i) const {
    const PoolStatistics& all = pool_.statistics().all();
    return {events_[i], Bytes(all.allocated_bytes.current), Bytes(all.reserved_bytes.current)};
  }
  [[nodiscard]] const MemoryEvent& at(std::size_t i) const { return trace_.memory_events[events_[i]]; }
  [[nodiscard]] Picos time(std::size_t i) const {
    const Picos recorded = at(i).time;
    return recorded == unknown_time ? Picos(static_cast<std::int64_t>(events_[i])) : recorded;
  }

  const Trace& trace_;
  const AllocationStreamOptions& options_;
  MemoryPool pool_;
  TorchPool* torch_;                   // null for other policies
  std::vector<std::uint32_t> events_;  // of this device, indices into Trace::memory_events
  bool has_completions_ = false;
  bool has_segments_ = false;
  std::unordered_map<std::uint64_t, BlockId> live_;  // by recorded address; never iterated
  std::unordered_map<std::uint64_t, BlockId> pending_;
  Bytes reserved_{};   // recorded
  Bytes requested_{};  // recorded
  AllocationStreamResult result_;
};

}  // namespace

std::vector<std::int16_t> memory_devices(const Trace& trace) {
  std::vector<std::int16_t> devices;
  for (const MemoryEvent& event : trace.memory_events) devices.push_back(event.device);
  for (const MemorySegment& segment : trace.memory_segments) devices.push_back(segment.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  std::erase_if(devices, [](std::int16_t device) { return device < 0; });
  return devices;
}

AllocationStreamResult replay_allocation_stream(const Trace& trace, const AllocationStreamOptions& options) {
  return StreamReplay(trace, options).run();
}

}  // namespace spillway
