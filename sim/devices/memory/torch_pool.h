// The torch policy: PyTorch's CUDA caching allocator, rule by rule (c10/cuda/CUDACachingAllocator.cpp of 2025). Numbers
// in comments are rules as tests/sim/torch_pool_test.cc and torch_expandable_test.cc state them. The torch-expandable
// policy is the same class with expandable_segments:True.
//
//   allocate  9 notice finished cross-stream events -> 3 round -> 5 choose pool -> 10, 11 best fit on the stream
//             -> 12 split; on a miss 13: collect garbage, take a segment, else give back cached segments and
//             try again, else out of memory
//   free      15 pending while other streams use it; then coalesce with free neighbours; the driver gets nothing
//
//   expandable segment (17): a range of addresses of one stream and pool, mapped in pages of g bytes
//     |## A ##|.free.|## B ##|...free...|--- unmapped ---|.free.|------------- unmapped -------------|
//     every boundary between mapped and unmapped lies on a multiple of g from the range's beginning
//
// Deviation: a memory fraction of exactly 1 is no fraction (no garbage collection, no allowed limit).
// Segment addresses are synthetic unless suggested: they count up from 2^48 (above what a
// process can address) on 2 MiB boundaries and are never reused. Real ones only break ties between blocks of equal size
// (24).
//
// Value semantics: a copy is a fork. Allocate and free are O(log n) plus short moves (free_set.h).
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "sim/devices/memory/free_set.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/devices/memory/memory_types.h"
#include "sim/devices/memory/stream_uses.h"
#include "sim/devices/memory/torch_settings.h"

namespace spillway::sim {

class TorchPool {
 public:
  explicit TorchPool(const TorchSettings& settings = {});

  Allocation allocate(const AllocationRequest& request);
  // Precondition: the block is live. Returns the number of events to complete before it is reusable; 0: it is.
  std::uint32_t free(BlockId block, Picos time);
  // Work on `stream` uses the block. The block's own stream is ignored.
  void record_stream(BlockId block, std::int64_t stream);
  void complete_event(BlockId block, std::int64_t stream);
  // Rule 9, which every allocation begins with.
  void process_events(Picos time);
  // torch.cuda.empty_cache(): waits for all events, gives every unsplit cached segment back.
  DriverCost empty_cache(Picos time);
  // Gives back the one cached segment at this address, if it is there and unsplit.
  bool release_segment(Addr address);
  // Unmaps the whole pages of the free block at this address of an expandable segment, if there is one.
  bool unmap_range(Addr address);

  // The next segment of this size gets this address (recorded ones, for verification). Kept until used or cleared.
  // An expandable segment may begin there, and pages put there in one go count as the ones suggested.
  void suggest_segment(Addr address, Bytes size, bool expandable = false) {
    suggestions_.push_back({address, size, expandable});
  }
  void clear_suggestions() { suggestions_.clear(); }
  [[nodiscard]] std::size_t suggestions() const { return suggestions_.size(); }

  // Bytes the owner of this pool holds besides, from now on: they count against the limits. Not for expandable
  // segments.
  void hold_elsewhere(Bytes bytes) {
    const Bytes limit = reserve_limit(settings_);
    limit_ = limit == Bytes::max() ? limit : std::max(Bytes{}, limit - bytes);
  }

  // The private pool may serve requests of the default pools when all else failed (13c).
  void use_on_out_of_memory(std::uint32_t private_pool);
  // No graph uses the private pool any more: its cached segments may be given back (13e).
  void make_freeable(std::uint32_t private_pool);

  // Starts from a recorded state. Precondition: nothing allocated yet; blocks tile their segments. Neighbouring
  // inactive blocks are merged. Returns one id per block of the state, none for free ones. Peaks start from here.
  // Expandable segments of one stream and pool that follow each other closely are ranges of one reservation; with
  // expandable segments off they are taken for driver allocations.
  std::vector<BlockId> restore(const PoolState& state);

  [[nodiscard]] PoolState state() const;  // O(blocks log segments)
  [[nodiscard]] const MemoryStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const { return uses_.events(); }
  [[nodiscard]] const TorchSettings& settings() const { return settings_; }
  [[nodiscard]] std::string_view name() const {
    return settings_.expandable_segments ? expandable_policy : torch_policy;
  }
  // The least reservation that the limit refused: up to it, all limits act alike. Bytes::max(): none; or expandable.
  [[nodiscard]] Bytes least_refused() const { return least_refused_; }
  void keep_rows(bool keep) {
    keep_rows_ = keep;
    rows_.clear();
  }
  // Rows of freed blocks in the order they were freed, then of live ones by block id.
  [[nodiscard]] std::vector<AllocationRow> rows() const;

  // Every structural invariant and every statistic, recomputed from the blocks alone. Returns the first
  // violation in words, or nothing. O(blocks log blocks); for tests and debug builds.
  [[nodiscard]] std::optional<std::string> check() const;

 private:
  struct Block {
    Addr address{};
    Bytes size{};
    Bytes requested{};
    std::int64_t stream = 0;
    Picos since{};
    Addr range{};  // beginning of its expandable segment; 0: a driver allocation
    BlockId prev = BlockId::none;
    BlockId next = BlockId::none;
    std::uint32_t pool = 0;  // index into pools_
    std::uint32_t tag = no_tag;
    std::uint32_t events = 0;                 // pending
    std::uint64_t searches_at_insertion = 0;  // for its age (16)
    bool exists = false;
    bool allocated = false;
    bool mapped = true;           // false: addresses of an expandable segment without memory
    bool used_elsewhere = false;  // has recorded stream uses
    [[nodiscard]] bool expandable() const { return range != Addr{}; }
    [[nodiscard]] bool idle() const { return !allocated && events == 0; }
  };
  struct Pool {
    FreeSet free;
    FreeSet unmapped;            // by (stream, address): every size counts as 0
    std::uint64_t searches = 0;  // counted only when garbage collection is on
    std::uint32_t private_pool = 0;
    bool small = false;
    bool freeable = true;  // 13e may give its segments back
    bool on_out_of_memory = false;
  };
  struct Suggestion {
    Addr address{};
    Bytes size{};
    bool expandable = false;
  };

  // Paths of one allocation (torch_pool.cc).
  std::optional<FreeSet::const_iterator> find_free(std::uint32_t pool, std::int64_t stream, Bytes size);
  BlockId take_segment(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost);
  BlockId find_on_miss(const AllocationRequest& request, std::uint32_t pool, Bytes size, DriverCost& cost);
  BlockId find_in_overflow(std::int64_t stream, Bytes size);
  Allocation hand_out(BlockId id, std::optional<FreeSet::const_iterator> place, const AllocationRequest& request,
                      Bytes size, const DriverCost& cost);
  void count_split(BlockId rest, Bytes size, bool was_split);
  void count_whole(BlockId id, bool was_split);
  void make_reusable(BlockId id, Picos time);
  BlockId merge(BlockId first, BlockId second);
  void fail(const AllocationRequest& request, std::uint32_t pool, Bytes size);
  // Expandable segments (torch_expandable.cc).
  [[nodiscard]] FreeSet::const_iterator prefer_expandable(const Pool& pool, FreeSet::const_iterator best) const;
  BlockId take_expandable(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost);
  BlockId find_addresses(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost);
  BlockId map(BlockId id, Bytes size, DriverCost& cost);
  void unmap(BlockId id, DriverCost& cost);
  BlockId cut(BlockId id, Bytes size);
  // Giving memory back (torch_release.cc).
  void collect_garbage(DriverCost& cost);
  bool release_oversize(std::uint32_t pool, std::int64_t stream, Bytes size, DriverCost& cost);
  void release_cached(Picos time, DriverCost& cost);
  void release_pool(std::uint32_t pool, DriverCost& cost);
  void release(BlockId id, DriverCost& cost);

  [[nodiscard]] bool collects_garbage() const;
  [[nodiscard]] bool should_split(const Block& block, Bytes size) const;
  [[nodiscard]] bool is_split(const Block& block) const {
    return block.prev != BlockId::none || block.next != BlockId::none;
  }
  std::uint32_t pool_index(std::uint32_t private_pool, bool small);
  Block& at(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Block& at(BlockId id) const { return blocks_[static_cast<std::size_t>(id)]; }
  BlockId make_block(const Block& block);
  void drop_block(BlockId id);
  void place_free(BlockId id, std::optional<FreeSet::const_iterator> instead_of);
  void insert_free(BlockId id) { place_free(id, std::nullopt); }
  void erase_free(BlockId id);
  [[nodiscard]] FreeBlock key(BlockId id) const;
  void insert_unmapped(BlockId id);
  void erase_unmapped(BlockId id);
  [[nodiscard]] FreeBlock unmapped_key(BlockId id) const;
  Addr segment_address(Bytes size);
  template <class Change>
  void count(std::uint32_t pool, Change change) {
    change(statistics_.pools[static_cast<std::size_t>(PoolKind::all)]);
    change(statistics_.pools[static_cast<std::size_t>(pools_[pool].small ? PoolKind::small : PoolKind::large)]);
  }
  void count_live(const Block& block);
  BlockId restore_segment(const SegmentState& segment, const PoolState& state, std::vector<BlockId>& ids);
  void restore_ranges(const PoolState& state, const std::vector<BlockId>& heads);
  void link_unmapped(BlockId before, Addr end, BlockId behind);

  TorchSettings settings_;
  Bytes limit_;  // reserved bytes may not pass this; expandable segments: physical_limit()
  Bytes least_refused_ = Bytes::max();
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;
  std::vector<Pool> pools_;  // small and large pairs; the default pair first
  StreamUses uses_;
  std::vector<Suggestion> suggestions_;
  Addr next_segment_;
  std::vector<AllocationRow> rows_;
  MemoryStatistics statistics_;
  OutOfMemory out_of_memory_;
  bool keep_rows_ = false;
};

}  // namespace spillway::sim
