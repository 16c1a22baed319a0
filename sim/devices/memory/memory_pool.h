// One interface over all memory policies: a closed variant, so a call costs a jump and no policy object is ever
// shared between forks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "sim/devices/memory/gmlake_pool.h"
#include "sim/devices/memory/ideal_pool.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/devices/memory/planned_pool.h"
#include "sim/devices/memory/torch_pool.h"

namespace spillway::sim {

class MemoryPool {
 public:
  using Policy = std::variant<IdealPool, TorchPool, GmlakePool, PlannedPool>;

  explicit MemoryPool(Policy policy) : policy_(std::move(policy)) {}

  // Never throws for lack of memory: see Allocation::out_of_memory.
  Allocation allocate(const AllocationRequest& request) {
    return std::visit([&](auto& policy) { return policy.allocate(request); }, policy_);
  }
  // Precondition: the block is live (not none). Returns how many cross-stream events must complete before the
  // block is reusable: one per stream recorded; they are the last entries of pending_events().
  std::uint32_t free(BlockId block, Picos time) {
    return std::visit([&](auto& policy) { return policy.free(block, time); }, policy_);
  }
  // Work of another stream uses the block: it stays active after free() until that stream gets there.
  void record_stream(BlockId block, std::int64_t stream) {
    std::visit([&](auto& policy) { policy.record_stream(block, stream); }, policy_);
  }
  // The stream has passed the end of its use of a freed block. Noticed at the next allocation.
  void complete_event(BlockId block, std::int64_t stream) {
    std::visit([&](auto& policy) { policy.complete_event(block, stream); }, policy_);
  }
  // Notices completed events now.
  void process_events(Picos time) {
    std::visit([&](auto& policy) { policy.process_events(time); }, policy_);
  }
  // The program's empty_cache().
  DriverCost empty_cache(Picos time) {
    return std::visit([&](auto& policy) { return policy.empty_cache(time); }, policy_);
  }
  // Starts from a recorded state; one id per block of the state, none for free blocks. The torch policies take it as it
  // is, if it is of their kind (segments expandable or not). Else, and for gmlake, planned and arena, its live blocks
  // are allocated again, by address.
  std::vector<BlockId> restore(const PoolState& state);
  [[nodiscard]] PoolState state() const {
    return std::visit([](const auto& policy) { return policy.state(); }, policy_);
  }
  [[nodiscard]] const MemoryStatistics& statistics() const {
    return std::visit([](const auto& policy) -> const MemoryStatistics& { return policy.statistics(); }, policy_);
  }
  // Meaningful after an allocation said out_of_memory.
  [[nodiscard]] const OutOfMemory& last_out_of_memory() const {
    return std::visit([](const auto& policy) -> const OutOfMemory& { return policy.last_out_of_memory(); }, policy_);
  }
  [[nodiscard]] std::span<const PendingEvent> pending_events() const {
    return std::visit([](const auto& policy) { return policy.pending_events(); }, policy_);
  }
  // From now on, keeps a row for every block (rows()), and forgets rows of blocks that are gone. Off by default.
  void keep_rows(bool keep) {
    std::visit([&](auto& policy) { policy.keep_rows(keep); }, policy_);
  }
  [[nodiscard]] std::vector<AllocationRow> rows() const {
    return std::visit([](const auto& policy) { return policy.rows(); }, policy_);
  }
  [[nodiscard]] std::string_view name() const;

  // The policy itself, null if it is another one.
  template <class P>
  [[nodiscard]] P* as() {
    return std::get_if<P>(&policy_);
  }
  template <class P>
  [[nodiscard]] const P* as() const {
    return std::get_if<P>(&policy_);
  }

 private:
  Policy policy_;
};

// An allocator as a scenario or a command line states it.
struct MemoryPoolOptions {
  std::string policy{torch_policy};  // one of memory_policies()
  std::string settings;              // in PYTORCH_CUDA_ALLOC_CONF's spelling; gmlake: see GmlakeSettings; else none
  std::shared_ptr<const MemoryPlan> plan;  // planned and arena only, and needed there
  Bytes device_memory = Bytes::max();
  Bytes outside_memory{0};     // taken by others: context, communication buffers
  double memory_fraction = 1;  // in (0, 1]; a value in `settings` wins
};
// arena, gmlake, ideal, planned, torch, torch-expandable
std::span<const std::string_view> memory_policies();
// Throws InputError for bad settings, for an unknown policy (with the nearest known ones), and for a plan that is
// missing, of the other kind or unused by the policy.
MemoryPool make_memory_pool(const MemoryPoolOptions& options);

}  // namespace spillway::sim
