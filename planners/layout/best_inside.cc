#include "planners/layout/best_inside.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace spillway::planners {
namespace {

std::size_t tree_index(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

BestInside::BestInside(std::span<const SectionSpan> lives) {
  const auto count = static_cast<std::int32_t>(lives.size());
  while (leaves_ < count) leaves_ *= 2;
  by_birth_.resize(lives.size());
  std::iota(by_birth_.begin(), by_birth_.end(), 0);
  std::stable_sort(by_birth_.begin(), by_birth_.end(), [&](std::int32_t a, std::int32_t b) {
    return lives[tree_index(a)].lower < lives[tree_index(b)].lower;
  });
  place_of_.resize(lives.size());
  for (std::int32_t p = 0; p < count; ++p) place_of_[tree_index(by_birth_[tree_index(p)])] = p;
  leaf_of_.resize(lives.size());
  constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
  boxes_.assign(2 * tree_index(leaves_), {never, -1, never, -1});
  best_.resize(boxes_.size());
  std::vector<std::int32_t> buffers = by_birth_;
  split(buffers, 0, leaves_, true, lives);
  for (std::size_t n = tree_index(leaves_) - 1; n > 0; --n) {
    const Box &a = boxes_[2 * n], &b = boxes_[2 * n + 1];
    boxes_[n] = {std::min(a.first_born, b.first_born), std::max(a.last_born, b.last_born),
                 std::min(a.first_end, b.first_end), std::max(a.last_end, b.last_end)};
  }
}

// Gives these buffers the leaves from `from` on; `size` is a power of two.
void BestInside::split(std::span<std::int32_t> buffers, std::int32_t from, std::int32_t size, bool by_end,
                       std::span<const SectionSpan> lives) {
  if (buffers.empty()) return;
  if (size == 1) {
    const SectionSpan life = lives[tree_index(buffers[0])];
    leaf_of_[tree_index(buffers[0])] = from;
    boxes_[tree_index(leaves_ + from)] = {life.lower, life.lower, life.upper, life.upper};
    return;
  }
  const std::size_t half = std::min(tree_index(size / 2), buffers.size());
  const auto end_of = [&](std::int32_t b) { return by_end ? lives[tree_index(b)].upper : place_of_[tree_index(b)]; };
  if (half < buffers.size())
    std::nth_element(buffers.begin(), buffers.begin() + static_cast<std::ptrdiff_t>(half), buffers.end(),
                     [&](std::int32_t a, std::int32_t b) {
                       return std::pair(end_of(a), place_of_[tree_index(a)]) <
                              std::pair(end_of(b), place_of_[tree_index(b)]);
                     });
  split(buffers.first(half), from, size / 2, !by_end, lives);
  split(buffers.subspan(half), from + size / 2, size / 2, !by_end, lives);
}

void BestInside::reset(std::span<const float> keys) {
  std::fill(best_.begin(), best_.end(), Best{0, -1});
  for (std::size_t b = 0; b < keys.size(); ++b) best_[tree_index(leaves_ + leaf_of_[b])] = {keys[b], place_of_[b]};
  for (std::size_t n = tree_index(leaves_) - 1; n > 0; --n) refresh(n);
  visits_ = 0;
}

void BestInside::refresh(std::size_t node) {
  const Best &a = best_[2 * node], &b = best_[2 * node + 1];
  best_[node] = b.beats(a) ? b : a;
}

std::int32_t BestInside::find(SectionSpan stretch) {
  Best best{0, -1};
  find(1, stretch, best);
  return best.place < 0 ? -1 : by_birth_[tree_index(best.place)];
}

void BestInside::find(std::size_t node, SectionSpan stretch, Best& best) {
  ++visits_;
  if (!best_[node].beats(best)) return;
  const Box& box = boxes_[node];
  if (box.last_born < stretch.lower || box.first_end > stretch.upper) return;
  if (box.first_born >= stretch.lower && box.last_end <= stretch.upper) {
    best = best_[node];
    return;
  }
  const std::size_t first = best_[2 * node + 1].beats(best_[2 * node]) ? 2 * node + 1 : 2 * node;
  find(first, stretch, best);
  find(first ^ 1U, stretch, best);
}

void BestInside::remove(std::int32_t buffer) {
  std::size_t node = tree_index(leaves_ + leaf_of_[tree_index(buffer)]);
  best_[node].place = -1;
  for (node /= 2; node > 0; node /= 2) refresh(node);
}

}  // namespace spillway::planners
