#include "planners/layout/skyline.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace spillway::planners {
namespace {

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
    : buffers_(buffers), sections_(sections), waiting_(sections.spans) {
  wastes_ = power_of_two_from(skyline_index(sections.count));
}

void Skyline::reset(std::span<const float> keys) {
  waiting_.reset(keys);
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

bool Skyline::place(std::int32_t gap, std::int32_t index, std::int64_t bound) {
  const LayoutBuffer& buffer = buffers_[skyline_index(index)];
  const SectionSpan span = sections_.spans[skyline_index(index)];
  const std::int64_t floor = gap_height_[skyline_index(gap)];
  const std::int32_t upper = gap_upper_[skyline_index(gap)];
  const std::int64_t offset = aligned(floor, buffer.alignment);
  const std::int64_t top = offset + buffer.size;
  offsets_[skyline_index(index)] = offset;
  height_ = std::max(height_, top);
  ++placements_;
  waiting_.remove(index);
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
    const std::int32_t index = waiting_.find({gap, gap_upper_[skyline_index(gap)]});
    if (index >= 0 ? !place(gap, index, bound) : !lift(gap, bound)) return false;
  }
  return true;
}

}  // namespace spillway::planners
