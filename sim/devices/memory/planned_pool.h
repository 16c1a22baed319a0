// The planned policy (STAlloc's run time) and the arena policy (ROAM's fixed layout): requests go where a plan says,
// all else goes to a caching allocator.
//
//   request                                     planned (PlanKind::stalloc)          arena (PlanKind::layout)
//   <= 512 bytes                                slot pool, doubled when full         as any other
//   ordinal among those above 512 is in cached  caching allocator                    -
//   RequestSpace anywhere / a dynamic space     its place in the profiled step, if   -
//                                               the plan has one and it is free and
//                                               large enough; best fit in what is
//                                               free now of the pool / of that space;
//                                               else caching
//   any other: the next place of the plan       if the size is the planned one, and  if it is not larger
//   (the ordinal advances in any case)          nothing live overlaps it; else caching allocator
//   a block from before the stream              its place, if the plan has one; else caching allocator
//
// So one request too many or too few shifts the rest of its period to the caching allocator, until the plan's end comes
// round. The plan's pool is one driver allocation, made at the first request that needs it; if it does not fit, that
// request runs out of memory.
//
// Source: the run time of infinigence/STAlloc 3a9f97f. It has slots of twice the profiled peak, and the caching
// allocator inside rounds segments to 512 bytes instead of 2 MiB and has no expandable segments. Arena: ROAM has no run
// time; requests without a place go to PyTorch's allocator as it is.
//
// Deviations. The published code checks for overlap only if STALLOC_STATIC_FALLBACK is set, and not between static and
// reused places. Here a place with a live block in it is never handed out. As there, streams are ignored: a block is
// reusable as soon as it is given back, whatever other streams do with it. Places of dynamic requests and of blocks
// from before are ours; plans made as published have none.
//
// Allocate and free: O(log live) for places, O(live + ranges) for dynamic spaces.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/devices/memory/block_ledger.h"
#include "sim/devices/memory/lent_torch.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::sim {

// What became of the requests.
struct PlanOutcome {
  std::uint64_t placed = 0;         // in the place planned
  std::uint64_t small = 0;          // in slots
  std::uint64_t reused = 0;         // dynamic, in free parts of the pool
  std::uint64_t size_mismatch = 0;  // and from here on: in the caching allocator
  std::uint64_t overlap = 0;
  std::uint64_t unplanned = 0;  // no place in the plan, or behind its end
  std::uint64_t dynamic_cached = 0;
};

class PlannedPool {
 public:
  // Shares the plan: copies of the pool are cheap. Precondition: check_plan() has passed. `limits`: device memory,
  // fraction and memory outside; its rounding rules are the policy's own business.
  PlannedPool(std::shared_ptr<const MemoryPlan> plan, const TorchSettings& limits);

  Allocation allocate(const AllocationRequest& request);
  std::uint32_t free(BlockId block, Picos time);
  void record_stream(BlockId, std::int64_t) {}
  void complete_event(BlockId, std::int64_t) {}
  void process_events(Picos) {}
  DriverCost empty_cache(Picos time) { return cache_.empty_cache(time, ledger_.statistics); }
  // Blocks from before go to their places in the plan, else to the caching allocator.
  std::vector<BlockId> restore(const PoolState& state) { return allocate_live_blocks(*this, state); }

  [[nodiscard]] PoolState state() const;
  [[nodiscard]] std::string_view name() const { return policy_of(*plan_); }
  [[nodiscard]] const PlanOutcome& outcome() const { return outcome_; }
  [[nodiscard]] const MemoryStatistics& statistics() const { return ledger_.statistics; }
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const { return ledger_.last_out_of_memory(); }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const { return {}; }
  void keep_rows(bool keep) { ledger_.keep_rows(keep); }
  [[nodiscard]] std::vector<AllocationRow> rows() const { return ledger_.rows(); }
  // Every invariant, recomputed. The first violation in words, or nothing.
  [[nodiscard]] std::optional<std::string> check() const;

 private:
  enum class Part : std::uint32_t { pool, slots, cache };

  Allocation cached(const AllocationRequest& request, std::uint64_t& reason);
  Allocation in_slot(const AllocationRequest& request);
  Allocation in_place(const AllocationRequest& request, Bytes size);
  Allocation in_space(const AllocationRequest& request, Bytes size, const PlannedPlace& first);
  Allocation from_before(const AllocationRequest& request, Bytes size);
  Allocation in_pool(const AllocationRequest& request, Bytes offset, Bytes size, std::uint64_t& outcome);
  Allocation hand_out(const AllocationRequest& request, Addr address, Bytes size, Part part, const DriverCost& cost);
  Allocation out_of_memory(const AllocationRequest& request, Bytes needed);
  bool take_segment(PoolKind kind, Bytes size, DriverCost& cost);
  const PlannedPlace* next_place();
  PlannedPlace next_first_choice();
  [[nodiscard]] bool is_taken(Bytes begin, Bytes end) const;
  [[nodiscard]] std::optional<Bytes> best_fit(Bytes size, std::span<const PlanRange> ranges) const;
  void release(const BlockLedger::Block& block, Picos time);

  std::shared_ptr<const MemoryPlan> plan_;
  Bytes limit_;
  BlockLedger ledger_;
  LentTorch cache_;
  std::map<Bytes, Bytes> taken_;  // live ranges of the pool, begin -> end
  Bytes own_reserved_{};
  bool has_pool_ = false;
  std::size_t next_ = 0;          // place of the next planned request
  std::size_t next_dynamic_ = 0;  // of plan_->dynamic
  std::size_t next_before_ = 0;
  std::uint64_t requests_ = 0;        // above 512 bytes, for MemoryPlan::cached
  std::vector<std::uint32_t> slots_;  // free, the next at the back
  std::uint32_t slot_count_ = 0;
  PlanOutcome outcome_;
};

}  // namespace spillway::sim
