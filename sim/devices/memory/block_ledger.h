// The bookkeeping that policies share: live and pending blocks, uses by other streams, statistics, finished rows.
// A policy decides where a block goes; the ledger remembers it and says when its place may be reused.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/devices/memory/memory_types.h"
#include "sim/devices/memory/stream_uses.h"

namespace spillway::sim {

class BlockLedger {
 public:
  struct Block {
    Addr address{};
    Bytes size{};  // 0: no such block
    Bytes requested{};
    Picos since{};
    std::int64_t stream = 0;
    std::uint32_t tag = no_tag;
    std::uint32_t events = 0;         // pending
    std::uint32_t place = 0;          // the policy's own note
    BlockId inner = BlockId::none;    // in the caching allocator inside
    PoolKind kind = PoolKind::large;  // small or large: where it is counted
    bool allocated = true;

    // The block of a request at this address; the other fields as above.
    static Block of(const AllocationRequest& request, Addr address, Bytes size) {
      Block block;
      block.address = address;
      block.size = size;
      block.requested = request.bytes;
      block.since = request.time;
      block.stream = request.stream;
      block.tag = request.tag;
      return block;
    }
  };

  BlockId add(const Block& block);
  [[nodiscard]] const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  // Precondition: the block is live. release(const Block&) is called when the place may be reused: at once, or within a
  // later process_events(). Returns the number of events to complete before.
  template <class Release>
  std::uint32_t free(BlockId id, Picos time, Release release) {
    const std::uint32_t events = begin_free(id);
    if (events == 0) end_free(id, time, release);
    return events;
  }
  template <class Release>
  void process_events(Picos time, Release release) {
    uses_.take_completed([&](BlockId id) {
      if (--blocks_[static_cast<std::size_t>(id)].events == 0) end_free(id, time, release);
    });
  }
  template <class Release>
  void wait_for_events(Picos time, Release release) {
    ++statistics.sync_all_streams;
    uses_.complete_all();
    process_events(time, release);
  }
  // Precondition: the block is live. Its own stream is ignored.
  void record_stream(BlockId id, std::int64_t stream);
  void complete_event(BlockId id, std::int64_t stream) { uses_.complete(id, stream); }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const { return uses_.events(); }

  // Segments taken (or given back, negative) by the policy itself.
  void change_segments(PoolKind kind, std::int64_t segments, Bytes bytes);

  // Live blocks of all kinds, by id.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Block& block : blocks_) {
      if (block.size > Bytes::zero()) visit(block);
    }
  }
  void keep_rows(bool keep) {
    keep_rows_ = keep;
    rows_.clear();
  }
  [[nodiscard]] std::vector<AllocationRow> rows() const;
  // Counts the failure and fills in what the statistics know.
  OutOfMemory& fail(const AllocationRequest& request, Bytes needed, Bytes limit);
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const { return out_of_memory_; }

  MemoryStatistics statistics;

 private:
  std::uint32_t begin_free(BlockId id);
  template <class Release>
  void end_free(BlockId id, Picos time, Release release) {
    const Block gone = at(id);
    forget(id, time);
    release(gone);
  }
  void forget(BlockId id, Picos time);
  template <class Change>
  void count(PoolKind kind, Change change) {
    change(statistics.pools[static_cast<std::size_t>(PoolKind::all)]);
    change(statistics.pools[static_cast<std::size_t>(kind)]);
  }

  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  StreamUses uses_;
  std::vector<AllocationRow> rows_;
  OutOfMemory out_of_memory_;
  bool keep_rows_ = false;
};

// Allocates the live blocks of a recorded state again, by address: for policies that would not have reached that state.
// Returns one id per block of the state, none for free ones and for those that did not fit.
template <class Policy>
std::vector<BlockId> allocate_live_blocks(Policy& policy, const PoolState& state) {
  std::vector<BlockId> ids(state.blocks.size(), BlockId::none);
  for (const SegmentState& segment : state.segments) {
    for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
      if (state.blocks[i].state == BlockState::inactive) continue;
      AllocationRequest request;
      request.bytes = state.blocks[i].requested;
      request.stream = segment.stream;
      request.private_pool = segment.private_pool;
      request.before = true;
      ids[i] = policy.allocate(request).block;
    }
  }
  return ids;
}

}  // namespace spillway::sim
