// The free blocks of one pool, ordered by (stream, size, address): rule 7.
//
//   order_   [ 3 | 0 | 5 ]            chunk numbers, ascending by content
//              |   |   +-- {m n o}
//              |   +------ {e g k l}  a chunk: at most 64 blocks, sorted
//              +---------- {a b}
//
// A sorted list in chunks: it copies with the simulation, allocates nothing once grown, and moves at most one chunk
// per change. Find, insert, erase and replace: O(log n) comparisons, O(64 + n/64) moves.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "sim/devices/memory/memory_types.h"

namespace spillway::sim {

struct FreeBlock {
  std::int64_t stream = 0;
  Bytes size{};
  Addr address{};
  BlockId block = BlockId::none;
  friend auto operator<=>(const FreeBlock&, const FreeBlock&) = default;
};

class FreeSet {
 public:
  class const_iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = FreeBlock;
    using difference_type = std::ptrdiff_t;
    using pointer = const FreeBlock*;
    using reference = const FreeBlock&;

    const_iterator() = default;
    reference operator*() const { return set_->chunk(chunk_).blocks[at_]; }
    pointer operator->() const { return &**this; }
    const_iterator& operator++() {
      if (++at_ == set_->chunk(chunk_).count) {
        ++chunk_;
        at_ = 0;
      }
      return *this;
    }
    const_iterator operator++(int) { return std::exchange(*this, std::next(*this)); }
    const_iterator& operator--() {
      if (at_ == 0) at_ = set_->chunk(--chunk_).count;
      --at_;
      return *this;
    }
    const_iterator operator--(int) { return std::exchange(*this, std::prev(*this)); }
    friend bool operator==(const const_iterator&, const const_iterator&) = default;

   private:
    friend class FreeSet;
    const_iterator(const FreeSet* set, std::size_t chunk, std::size_t at) : set_(set), chunk_(chunk), at_(at) {}
    const FreeSet* set_ = nullptr;
    std::size_t chunk_ = 0;  // position in order_
    std::size_t at_ = 0;     // below the chunk's count, except at the end
  };

  [[nodiscard]] const_iterator begin() const { return {this, 0, 0}; }
  [[nodiscard]] const_iterator end() const { return {this, order_.size(), 0}; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool contains(const FreeBlock& block) const;
  // First block of the stream with at least `size` bytes, the lowest address among equals (rule 10); may be a
  // block of another stream or the end.
  [[nodiscard]] const_iterator lower_bound(std::int64_t stream, Bytes size) const {
    return find({stream, size, Addr{0}, BlockId{0}});
  }
  void insert(const FreeBlock& block);
  // Precondition, here and below: it is there.
  [[nodiscard]] const_iterator place_of(const FreeBlock& block) const;
  void erase(const FreeBlock& block) { erase(place_of(block)); }
  void erase(const_iterator at);
  // One for another: erase and insert, in one move where both have their place in one chunk.
  void replace(const_iterator at, const FreeBlock& block);

 private:
  static constexpr std::size_t capacity = 64;
  struct Chunk {
    std::array<FreeBlock, capacity> blocks;
    std::size_t count = 0;
  };

  [[nodiscard]] const Chunk& chunk(std::size_t position) const { return chunks_[order_[position]]; }
  [[nodiscard]] Chunk& chunk(std::size_t position) { return chunks_[order_[position]]; }
  [[nodiscard]] const_iterator find(const FreeBlock& block) const;  // first not less
  void add_chunk(std::size_t position);
  void drop_chunk(std::size_t position);
  void split_chunk(std::size_t position);

  void note_last(std::size_t position) { last_[position] = chunk(position).blocks[chunk(position).count - 1]; }

  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> unused_;
  std::vector<std::uint32_t> order_;
  std::vector<FreeBlock> last_;  // of each chunk, in order
  std::size_t size_ = 0;
};

}  // namespace spillway::sim
