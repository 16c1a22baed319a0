#include "planners/layout/skyline.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace spillway::planners {
namespace {

constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t merged = -1;  // height of a section that begins no gap

std::size_t skyline_index(std::int32_t index) { return static_cast<std::size_t>(index); }

std::int32_t power_of_two_from(std::size_t count) {
  std::int32_t power = 1;
  while (skyline_index(power) < count) power *= 2;
  return power;
}

std::int64_t aligned(std::int64_t offset, std::int64_t alignment) {
  if (alignment == 1) return offset;
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace

Skyline::Skyline(std::span<const LayoutBuffer> buffers, const LayoutSections& sections)
    : buffers_(buffers), sections_(sections) {
  const auto count = static_cast<std::int32_t>(buffers.size());
  first_at_.assign(skyline_index(sections.count) + 2, 0);
  for (const SectionSpan& span : sections.spans) ++first_at_[skyline_index(span.lower) + 1];
  for (std::size_t s = 1; s < first_at_.size(); ++s) first_at_[s] += first_at_[s - 1];
  std::vector<std::int32_t> next(first_at_.begin(), first_at_.end());
  by_birth_.resize(skyline_index(count));
  for (std::int32_t i = 0; i < count; ++i)
    by_birth_[skyline_index(next[skyline_index(sections.spans[skyline_index(i)].lower)]++)] = i;
  leaves_ = power_of_two_from(buffers.size());
  wastes_ = power_of_two_from(skyline_index(sections.count));
}

void Skyline::reset(std::span<const float> keys) {
  nodes_.assign(2 * skyline_index(leaves_), {never, -std::numeric_limits<float>::infinity()});
  for (std::size_t p = 0; p < by_birth_.size(); ++p)
    nodes_[skyline_index(leaves_) + p] = {sections_.spans[skyline_index(by_birth_[p])].upper,
                                          keys[skyline_index(by_birth_[p])]};
  for (std::size_t n = skyline_index(leaves_) - 1; n > 0; --n)
    nodes_[n] = {std::min(nodes_[2 * n].first_end, nodes_[2 * n + 1].first_end),
                 std::max(nodes_[2 * n].best_key, nodes_[2 * n + 1].best_key)};
  demand_.assign(2 * skyline_index(wastes_), 0);
  own_.assign(skyline_index(wastes_), 0);
  std::copy(sections_.live.begin(), sections_.live.end(), demand_.begin() + wastes_);
  for (std::size_t n = skyline_index(wastes_) - 1; n > 0; --n)
    demand_[n] = std::max(demand_[2 * n], demand_[2 * n + 1]);
  gap_height_.assign(skyline_index(sections_.count) + 1, merged);
  gap_upper_.assign(skyline_index(sections_.count) + 1, 0);
  gap_lower_.assign(skyline_index(sections_.count) + 1, 0);
  heap_.clear();
  offsets_.assign(buffers_.size(), layout_free);
  height_ = placements_ = 0;
}

// The best key among the positions [begin, end) below a node whose buffers end by `upper`.
void Skyline::find(std::size_t node, std::int32_t from, std::int32_t size, std::int32_t begin, std::int32_t end,
                   std::int32_t upper, Best& best) const {
  const Node& here = nodes_[node];
  if (here.first_end > upper || (best.position >= 0 && here.best_key <= best.key) || from >= end ||
      from + size <= begin)
    return;
  if (size == 1) {
    best = {here.best_key, from};
    return;
  }
  const std::int32_t half = size / 2;
  if (nodes_[2 * node].best_key >= nodes_[2 * node + 1].best_key) {
    find(2 * node, from, half, begin, end, upper, best);
    find(2 * node + 1, from + half, half, begin, end, upper, best);
  } else {
    find(2 * node + 1, from + half, half, begin, end, upper, best);
    find(2 * node, from, half, begin, end, upper, best);
  }
}

void Skyline::remove(std::int32_t position) {
  std::size_t node = skyline_index(leaves_ + position);
  nodes_[node] = {never, -std::numeric_limits<float>::infinity()};
  for (node /= 2; node > 0; node /= 2)
    nodes_[node] = {std::min(nodes_[2 * node].first_end, nodes_[2 * node + 1].first_end),
                    std::max(nodes_[2 * node].best_key, nodes_[2 * node + 1].best_key)};
}

void Skyline::waste(std::size_t node, std::int32_t from, std::int32_t size, SectionSpan span, std::int64_t amount) {
  if (span.lower <= from && from + size <= span.upper) {
    demand_[node] += amount;
    if (size > 1) own_[node] += amount;
    return;
  }
  const std::int32_t half = size / 2;
  if (span.lower < from + half) waste(2 * node, from, half, span, amount);
  if (span.upper > from + half) waste(2 * node + 1, from + half, half, span, amount);
  demand_[node] = std::max(demand_[2 * node], demand_[2 * node + 1]) + own_[node];
}

std::int32_t Skyline::worst_section() const {
  std::size_t node = 1;
  while (node < skyline_index(wastes_)) node = demand_[2 * node] >= demand_[2 * node + 1] ? 2 * node : 2 * node + 1;
  return static_cast<std::int32_t>(node) - wastes_;
}

void Skyline::push_gap(std::int32_t lower) {
  heap_.emplace_back(gap_height_[skyline_index(lower)], lower);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// A flat piece of the skyline, joined with neighbours of its height.
void Skyline::open_gap(std::int32_t lower, std::int32_t upper, std::int64_t height) {
  if (lower > 0) {
    const std::int32_t left = gap_lower_[skyline_index(lower)];
    if (gap_height_[skyline_index(left)] == height && gap_upper_[skyline_index(left)] == lower) {
      gap_height_[skyline_index(lower)] = merged;
      lower = left;
    }
  }
  if (upper < sections_.count && gap_height_[skyline_index(upper)] == height) {
    gap_height_[skyline_index(upper)] = merged;
    upper = gap_upper_[skyline_index(upper)];
  }
  gap_height_[skyline_index(lower)] = height;
  gap_upper_[skyline_index(lower)] = upper;
  gap_lower_[skyline_index(upper)] = lower;
  push_gap(lower);
}

bool Skyline::place(std::int32_t gap, std::int32_t position, std::int64_t bound) {
  const std::int32_t index = by_birth_[skyline_index(position)];
  const LayoutBuffer& buffer = buffers_[skyline_index(index)];
  const SectionSpan span = sections_.spans[skyline_index(index)];
  const std::int64_t floor = gap_height_[skyline_index(gap)];
  const std::int32_t upper = gap_upper_[skyline_index(gap)];
  const std::int64_t offset = aligned(floor, buffer.alignment);
  const std::int64_t top = offset + buffer.size;
  offsets_[skyline_index(index)] = offset;
  height_ = std::max(height_, top);
  ++placements_;
  remove(position);
  if (offset > floor) waste(1, 0, wastes_, span, offset - floor);
  if (top >= bound || demand_[1] >= bound) return false;
  if (span.lower > gap) {
    gap_upper_[skyline_index(gap)] = span.lower;
    gap_lower_[skyline_index(span.lower)] = gap;
    push_gap(gap);
  }
  if (span.upper < upper) {
    gap_height_[skyline_index(span.upper)] = floor;
    gap_upper_[skyline_index(span.upper)] = upper;
    gap_lower_[skyline_index(upper)] = span.upper;
    push_gap(span.upper);
  }
  open_gap(span.lower, span.upper, top);
  return true;
}

bool Skyline::lift(std::int32_t gap, std::int64_t bound) {
  const std::int32_t upper = gap_upper_[skyline_index(gap)];
  std::int64_t wall = std::numeric_limits<std::int64_t>::max();
  if (gap > 0) wall = gap_height_[skyline_index(gap_lower_[skyline_index(gap)])];
  if (upper < sections_.count) wall = std::min(wall, gap_height_[skyline_index(upper)]);
  waste(1, 0, wastes_, {gap, upper}, wall - gap_height_[skyline_index(gap)]);
  if (demand_[1] >= bound) return false;
  open_gap(gap, upper, wall);
  return true;
}

bool Skyline::pack(std::span<const float> keys, std::int64_t bound) {
  reset(keys);
  if (buffers_.empty()) return true;
  if (demand_[1] >= bound) return false;
  open_gap(0, sections_.count, 0);
  while (skyline_index(static_cast<std::int32_t>(placements_)) < buffers_.size()) {
    const auto [height, gap] = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    if (gap_height_[skyline_index(gap)] != height) continue;  // merged or lifted since
    const std::int32_t upper = gap_upper_[skyline_index(gap)];
    Best best;
    find(1, 0, leaves_, first_at_[skyline_index(gap)], first_at_[skyline_index(upper)], upper, best);
    if (best.position >= 0 ? !place(gap, best.position, bound) : !lift(gap, bound)) return false;
  }
  return true;
}

}  // namespace spillway::planners
