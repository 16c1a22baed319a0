#include "validation/trainer/device_memory.h"

#include <algorithm>
#include <vector>

#include "base/input_error.h"

namespace spillway::validation {

DeviceMemory::DeviceMemory(Backend& backend, const MemoryPoolOptions& options)
    : backend_(backend), pool_(make_memory_pool(options)) {}

DeviceMemory::~DeviceMemory() {
  for (const auto& [address, segment] : segments_) backend_.give_segment(segment.memory);
}

// Takes and gives back real segments until they are the policy's; false when the device has no more.
bool DeviceMemory::follow_segments() {
  const PoolState state = pool_.state();
  std::map<Addr, Bytes> wanted;
  for (const SegmentState& segment : state.segments) wanted.emplace(segment.address, segment.total);
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto found = wanted.find(it->first);
    if (found != wanted.end() && found->second == it->second.bytes) {
      ++it;
      continue;
    }
    backend_.give_segment(it->second.memory);
    ++driver_calls_;
    it = segments_.erase(it);
  }
  for (const auto& [address, bytes] : wanted) {
    if (segments_.contains(address)) continue;
    std::byte* memory = backend_.take_segment(bytes);
    ++driver_calls_;
    if (memory == nullptr) return false;
    segments_.emplace(address, Segment{bytes, memory});
  }
  return true;
}

std::byte* DeviceMemory::memory_at(Addr address) const {
  auto above = segments_.upper_bound(address);
  SPILLWAY_ASSERT(above != segments_.begin());
  --above;
  const auto offset = static_cast<std::int64_t>(address.count() - above->first.count());
  SPILLWAY_ASSERT(offset < above->second.bytes.count());
  return above->second.memory + offset;
}

std::optional<DeviceMemory::Block> DeviceMemory::allocate(Bytes bytes, bool before) {
  AllocationRequest request;
  request.bytes = bytes;
  request.before = before;
  const Allocation allocation = pool_.allocate(request);
  if (allocation.out_of_memory) return std::nullopt;
  if (!allocation.cost.empty() && !follow_segments()) {
    device_is_full_ = true;
    return std::nullopt;
  }
  return Block{allocation.block, memory_at(allocation.address)};
}

void DeviceMemory::free(BlockId block) { pool_.free(block, Picos{}); }

std::string DeviceMemory::refusal() const {
  return device_is_full_ ? "the device has no more memory" : describe(pool_.last_out_of_memory());
}

}  // namespace spillway::validation
