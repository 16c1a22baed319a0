#include "sim/devices/memory/free_set.h"

#include <algorithm>

#include "base/input_error.h"

namespace spillway::sim {

namespace {

// How many of `count` sorted blocks are before this one.
std::size_t count_before(const FreeBlock* blocks, std::size_t count, const FreeBlock& block) {
  return static_cast<std::size_t>(std::lower_bound(blocks, blocks + count, block) - blocks);
}

}  // namespace

FreeSet::const_iterator FreeSet::find(const FreeBlock& block) const {
  const std::size_t position = count_before(last_.data(), last_.size(), block);
  if (position == order_.size()) return end();
  const Chunk& held = chunk(position);
  return {this, position, count_before(held.blocks.data(), held.count, block)};
}

FreeSet::const_iterator FreeSet::place_of(const FreeBlock& block) const {
  const const_iterator at = find(block);
  SPILLWAY_ASSERT(at != end() && *at == block);
  return at;
}

bool FreeSet::contains(const FreeBlock& block) const {
  const const_iterator at = find(block);
  return at != end() && *at == block;
}

void FreeSet::insert(const FreeBlock& block) {
  const_iterator at = find(block);
  if (order_.empty()) {
    add_chunk(0);
    at = begin();
  } else if (at == end()) {
    at = {this, order_.size() - 1, chunk(order_.size() - 1).count};
  }
  if (chunk(at.chunk_).count == capacity) {
    split_chunk(at.chunk_);
    if (at.at_ > capacity / 2) at = {this, at.chunk_ + 1, at.at_ - capacity / 2};
  }
  Chunk& holder = chunk(at.chunk_);
  const auto first = holder.blocks.begin();
  const auto place = first + static_cast<std::ptrdiff_t>(at.at_);
  const auto last = first + static_cast<std::ptrdiff_t>(holder.count);
  std::move_backward(place, last, last + 1);
  *place = block;
  ++holder.count;
  ++size_;
  note_last(at.chunk_);
}

void FreeSet::replace(const_iterator at, const FreeBlock& block) {
  Chunk& holder = chunk(at.chunk_);
  const bool is_here =
      (at.chunk_ == 0 || last_[at.chunk_ - 1] < block) && (at.chunk_ + 1 == order_.size() || block < last_[at.chunk_]);
  if (!is_here) {
    erase(at);
    insert(block);
    return;
  }
  const auto first = holder.blocks.begin();
  const auto old = first + static_cast<std::ptrdiff_t>(at.at_);
  const auto place = first + static_cast<std::ptrdiff_t>(count_before(holder.blocks.data(), holder.count, block));
  if (place <= old) {
    std::move_backward(place, old, old + 1);
    *place = block;
  } else {
    std::move(old + 1, place, old);
    *(place - 1) = block;
  }
  note_last(at.chunk_);
}

void FreeSet::erase(const_iterator at) {
  Chunk& holder = chunk(at.chunk_);
  const auto first = holder.blocks.begin();
  const auto place = first + static_cast<std::ptrdiff_t>(at.at_);
  std::move(place + 1, first + static_cast<std::ptrdiff_t>(holder.count), place);
  --holder.count;
  --size_;
  if (holder.count == 0) {
    drop_chunk(at.chunk_);
    return;
  }
  note_last(at.chunk_);
  // Thin neighbours join, so that chunks stay at least a quarter full on average.
  if (holder.count > capacity / 4 || at.chunk_ + 1 == order_.size()) return;
  const Chunk& next = chunk(at.chunk_ + 1);
  if (holder.count + next.count > capacity / 2) return;
  std::copy_n(next.blocks.begin(), next.count, first + static_cast<std::ptrdiff_t>(holder.count));
  holder.count += next.count;
  note_last(at.chunk_);
  drop_chunk(at.chunk_ + 1);
}

void FreeSet::add_chunk(std::size_t position) {
  std::uint32_t number = static_cast<std::uint32_t>(chunks_.size());
  if (unused_.empty()) {
    chunks_.emplace_back();
  } else {
    number = unused_.back();
    unused_.pop_back();
  }
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(position), number);
  last_.insert(last_.begin() + static_cast<std::ptrdiff_t>(position), FreeBlock{});
}

void FreeSet::drop_chunk(std::size_t position) {
  chunk(position).count = 0;
  unused_.push_back(order_[position]);
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
  last_.erase(last_.begin() + static_cast<std::ptrdiff_t>(position));
}

void FreeSet::split_chunk(std::size_t position) {
  add_chunk(position + 1);
  Chunk& low = chunk(position);
  Chunk& high = chunk(position + 1);
  std::copy(low.blocks.begin() + capacity / 2, low.blocks.end(), high.blocks.begin());
  low.count = capacity / 2;
  high.count = capacity - capacity / 2;
  note_last(position);
  note_last(position + 1);
}

}  // namespace spillway::sim
