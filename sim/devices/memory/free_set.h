// The free blocks of one pool, ordered by (stream, size, address): rule 7.
//
// A sorted flat array: copies with the simulation, allocates nothing once grown. Find O(log n), insert and
// erase O(n) moves of 32 bytes (n is the number of free blocks, rarely above a few thousand).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "sim/devices/memory/memory_types.h"
#include "traces/base/input_error.h"

namespace spillway {

struct FreeBlock {
  std::int64_t stream = 0;
  Bytes size{};
  Addr address{};
  BlockId block = BlockId::none;
  friend auto operator<=>(const FreeBlock&, const FreeBlock&) = default;
};

class FreeSet {
 public:
  using const_iterator = std::vector<FreeBlock>::const_iterator;

  [[nodiscard]] const_iterator begin() const { return blocks_.begin(); }
  [[nodiscard]] const_iterator end() const { return blocks_.end(); }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  // First block of the stream with at least `size` bytes, the lowest address among equals (rule 10); may be a
  // block of another stream or the end.
  [[nodiscard]] const_iterator lower_bound(std::int64_t stream, Bytes size) const {
    return std::lower_bound(blocks_.begin(), blocks_.end(), FreeBlock{stream, size, Addr{0}, BlockId{0}});
  }
  void insert(const FreeBlock& block) {
    blocks_.insert(std::lower_bound(blocks_.begin(), blocks_.end(), block), block);
  }
  void erase(const_iterator at) { blocks_.erase(at); }
  void erase(const FreeBlock& block) {
    const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), block);
    SPILLWAY_ASSERT(at != blocks_.end() && *at == block);
    blocks_.erase(at);
  }

 private:
  std::vector<FreeBlock> blocks_;
};

}  // namespace spillway
