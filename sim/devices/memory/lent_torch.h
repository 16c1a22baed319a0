// A caching allocator inside a policy made of several parts, for what is not the policy's own business. Its blocks are
// live in both; its segments and its split free blocks are carried over to the owner's statistics after every call,
// what was given back first.
#pragma once

#include "sim/devices/memory/memory_types.h"
#include "sim/devices/memory/torch_pool.h"

namespace spillway::sim {

class LentTorch {
 public:
  explicit LentTorch(const TorchSettings& settings) : torch_(settings) {}

  // `owned_elsewhere`: device memory the owner holds outside.
  Allocation allocate(const AllocationRequest& request, Bytes owned_elsewhere, MemoryStatistics& owner);
  void free(BlockId id, Picos time, MemoryStatistics& owner);
  DriverCost empty_cache(Picos time, MemoryStatistics& owner);
  [[nodiscard]] const TorchPool& torch() const { return torch_; }

 private:
  void carry_over(MemoryStatistics& owner);

  TorchPool torch_;
  MemoryStatistics seen_;
};

}  // namespace spillway::sim
