// A memory policy of the simulator put in charge of real memory. It hands out addresses in segments that it makes, and
// each of its segments is backed by one of the backend's.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "sim/devices/memory/memory_pool.h"
#include "validation/trainer/backend.h"

namespace spillway::validation {

class DeviceMemory {
 public:
  // Throws InputError as make_memory_pool(). The backend must outlive it.
  DeviceMemory(Backend& backend, const MemoryPoolOptions& options);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  struct Block {
    BlockId id = BlockId::none;
    std::byte* memory = nullptr;
  };
  // None when the policy, or the device behind it, has no more; then refusal() says why.
  // `before`: there before the step, takes no part in a plan's order.
  std::optional<Block> allocate(Bytes bytes, bool before);
  void free(BlockId block);
  [[nodiscard]] std::string refusal() const;
  [[nodiscard]] const MemoryPool& pool() const { return pool_; }
  // Calls of the backend for segments, both directions.
  [[nodiscard]] std::uint64_t driver_calls() const { return driver_calls_; }

 private:
  struct Segment {
    Bytes bytes;
    std::byte* memory = nullptr;
  };
  bool follow_segments();
  [[nodiscard]] std::byte* memory_at(Addr address) const;

  Backend& backend_;
  MemoryPool pool_;
  std::map<Addr, Segment> segments_;  // by the policy's address
  std::uint64_t driver_calls_ = 0;
  bool device_is_full_ = false;
};

}  // namespace spillway::validation
