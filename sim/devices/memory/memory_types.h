// Terms of every memory policy: requests, outcomes, statistics, the state of segments and blocks.
//
//   segment  what the policy took from the driver:   |#### A ####|..free..|## B ##|.......free.......|
//   block    a half-open piece of a segment: live (allocated), pending (given back, but work of another
//            stream may still use it), or free (cached). The blocks of a segment tile it.
//
//   requested <= active, allocated <= active <= reserved, all in bytes:
//     requested  what active blocks were asked for   allocated  live blocks, after rounding
//     active     allocated plus pending blocks       reserved   the segments
//
// Source of the terms: PyTorch's torch.cuda.memory_stats (rules 6 and 22 of the list that torch_pool.h names).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/units.h"
#include "traces/trace.h"

namespace spillway::sim {

// A live or pending block of one pool. Reused after the block is gone.
enum class BlockId : std::uint32_t { none = 0xffffffffU };

inline constexpr std::uint32_t no_tag = 0xffffffffU;

// Permitted places of a request (planned policy only). `planned`: its place in the plan. `anywhere`: any free part of
// the pool. `cached`: only the caching allocator. Values from 0: the free part of that dynamic space of the plan.
enum class RequestSpace : std::int32_t { cached = -3, anywhere = -2, planned = -1 };

struct AllocationRequest {
  Bytes bytes{};                   // >= 0; 0 gives a null block and no event (rule 2)
  std::int64_t stream = 0;         // handle of the stream the block belongs to
  std::uint32_t private_pool = 0;  // 0: the default pools; else a graph or MemPool with its own pools
  Picos time{};                    // for rows only
  std::uint32_t tag = no_tag;      // the caller's, handed through to rows
  RequestSpace space = RequestSpace::planned;
  bool before = false;  // stands for a block from before the stream: takes no part in a plan's order
};

// The policy's driver calls within one call; the replay turns them into time.
struct DriverCost {
  std::uint32_t device_mallocs = 0;
  std::uint32_t device_frees = 0;
  std::uint32_t synchronizations = 0;  // waits for every pending cross-stream event
  Bytes malloc_bytes{};
  Bytes free_bytes{};
  // Virtual memory management: physical chunks, and the address ranges they appear in.
  std::uint32_t chunks_created = 0;   // cuMemCreate
  std::uint32_t chunks_released = 0;  // cuMemRelease
  std::uint32_t maps = 0;             // cuMemMap, one a chunk
  std::uint32_t unmaps = 0;           // cuMemUnmap, one a chunk
  std::uint32_t access_changes = 0;   // cuMemSetAccess, one a range
  std::uint32_t reservations = 0;     // cuMemAddressReserve

  void add(const DriverCost& more);
  [[nodiscard]] bool empty() const { return *this == DriverCost{}; }
  friend bool operator==(const DriverCost&, const DriverCost&) = default;
};

struct Allocation {
  BlockId block = BlockId::none;  // none: zero bytes asked for, or out of memory
  Addr address{};
  Bytes size{};                // of the block: what `allocated` grew by
  bool out_of_memory = false;  // why: last_out_of_memory() of the pool
  DriverCost cost;
};

// Why an allocation failed. Snapshot of the moment after the policy gave back all it could.
struct OutOfMemory {
  Bytes requested{};  // by this allocation
  Bytes needed{};     // rounded, or the segment it would have taken
  Bytes allocated{}, active{}, reserved{}, live_requested{};
  Bytes cached_small{}, cached_large{};  // free blocks that could not be given back: their segments are in use
  Bytes largest_free_block{};            // of the request's own pool and stream: what would have fitted
  Bytes limit{};                         // reserved may not pass this
  Picos time{};
  std::uint32_t tag = no_tag;
};
// One sentence for people: what was asked, what was resident, what would have had to give.
std::string describe(const OutOfMemory& out_of_memory);

// current <= peak <= allocated; allocated - freed == current.
struct Statistic {
  std::int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void increase(std::int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void decrease(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
  void change(std::int64_t amount) { amount >= 0 ? increase(amount) : decrease(-amount); }
  friend bool operator==(const Statistic&, const Statistic&) = default;
};

enum class PoolKind : std::uint8_t { all, small, large };
inline constexpr std::size_t pool_kind_count = 3;

struct PoolStatistics {
  Statistic allocations, allocated_bytes;  // live blocks
  Statistic active, active_bytes;          // live and pending blocks
  Statistic requested_bytes;               // of active blocks, before rounding
  Statistic segments, reserved_bytes;
  Statistic inactive_split, inactive_split_bytes;  // free blocks of segments that hold more than one block
  friend bool operator==(const PoolStatistics&, const PoolStatistics&) = default;
};

struct MemoryStatistics {
  std::array<PoolStatistics, pool_kind_count> pools;  // indexed by PoolKind
  std::int64_t alloc_retries = 0;
  std::int64_t ooms = 0;
  std::int64_t sync_all_streams = 0;
  std::int64_t device_mallocs = 0;
  std::int64_t device_frees = 0;
  Statistic oversize_allocations, oversize_segments;  // of at least max_split_size

  [[nodiscard]] const PoolStatistics& of(PoolKind kind) const { return pools[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const PoolStatistics& all() const { return of(PoolKind::all); }
  friend bool operator==(const MemoryStatistics&, const MemoryStatistics&) = default;
};

// Shares of memory held but not used, in [0, 1]; 0 when nothing was reserved.
struct Fragmentation {
  double by_allocated = 0;  // 1 - peak allocated / peak reserved (STAlloc's definition)
  double by_active = 0;     // 1 - peak active / peak reserved (GMLake's definition)
  Bytes internal{};         // active - requested, now: rounding and unsplit slack
  Bytes irreducible{};      // inactive split bytes, now
};
Fragmentation fragmentation(const MemoryStatistics& statistics);

// The life of one block; half-open [allocated, freed). Still live: freed == unknown_time.
struct AllocationRow {
  Addr address{};
  Bytes size{};
  Picos allocated{};
  Picos freed = unknown_time;
  std::uint32_t tag = no_tag;
};

// The whole state of a pool: for snapshot writers, and to start a pool from a recorded state.
struct SegmentState {
  Addr address{};
  Bytes total{};
  std::int64_t stream = 0;
  std::uint32_t private_pool = 0;
  bool large = false;
  bool expandable = false;        // a mapped range of an address reservation
  std::uint32_t first_block = 0;  // range in PoolState::blocks; blocks tile the segment in address order
  std::uint32_t block_count = 0;
};
struct PoolState {
  std::vector<SegmentState> segments;  // by address
  std::vector<MemoryBlock> blocks;
};

}  // namespace spillway::sim
