#include "planners/layout/gap_fit.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace spillway::planners {
namespace {

std::size_t gap_index(std::int32_t index) { return static_cast<std::size_t>(index); }

struct Range {
  std::int64_t lower, upper;
};

// The placed buffers, found by the time they live: a tree over births holding the latest end below each node.
class Placed {
 public:
  Placed(std::span<const LayoutBuffer> buffers, const LayoutSections& sections)
      : buffers_(buffers), sections_(sections), position_(buffers.size()), offsets_(buffers.size(), layout_free) {
    by_birth_.resize(buffers.size());
    std::iota(by_birth_.begin(), by_birth_.end(), 0);
    std::stable_sort(by_birth_.begin(), by_birth_.end(),
                     [&](std::int32_t a, std::int32_t b) { return span(a).lower < span(b).lower; });
    for (std::size_t p = 0; p < by_birth_.size(); ++p) position_[gap_index(by_birth_[p])] = p;
    while (leaves_ < buffers.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, 0);
  }

  void add(std::int32_t index, std::int64_t offset) {
    offsets_[gap_index(index)] = offset;
    for (std::size_t node = leaves_ + position_[gap_index(index)]; node > 0; node /= 2)
      latest_[node] = std::max(latest_[node], span(index).upper);
  }

  // What is in the way of a buffer, by offset.
  [[nodiscard]] std::vector<Range> beside(std::int32_t index) const {
    std::vector<Range> ranges;
    collect(1, 0, leaves_, span(index), ranges);
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.lower < b.lower; });
    return ranges;
  }

  std::vector<std::int64_t> take_offsets() { return std::move(offsets_); }

 private:
  [[nodiscard]] SectionSpan span(std::int32_t index) const { return sections_.spans[gap_index(index)]; }

  void collect(std::size_t node, std::size_t from, std::size_t size, SectionSpan life,
               std::vector<Range>& ranges) const {
    if (latest_[node] <= life.lower || from >= by_birth_.size() || span(by_birth_[from]).lower >= life.upper) return;
    if (size > 1) {
      collect(2 * node, from, size / 2, life, ranges);
      collect(2 * node + 1, from + size / 2, size / 2, life, ranges);
      return;
    }
    const std::int32_t index = by_birth_[from];
    ranges.push_back({offsets_[gap_index(index)], offsets_[gap_index(index)] + buffers_[gap_index(index)].size});
  }

  std::span<const LayoutBuffer> buffers_;
  const LayoutSections& sections_;
  std::vector<std::int32_t> by_birth_;
  std::vector<std::size_t> position_;
  std::size_t leaves_ = 1;
  std::vector<std::int32_t> latest_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace

std::vector<std::int64_t> fit_into_gaps(std::span<const LayoutBuffer> buffers, const LayoutSections& sections,
                                        std::span<const std::int32_t> order) {
  Placed placed(buffers, sections);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(buffers.size()); ++i)
    if (buffers[gap_index(i)].fixed_offset >= 0) placed.add(i, buffers[gap_index(i)].fixed_offset);
  for (const std::int32_t index : order) {
    const LayoutBuffer& buffer = buffers[gap_index(index)];
    if (buffer.fixed_offset >= 0) continue;
    std::int64_t offset = 0;
    for (const Range& range : placed.beside(index)) {
      if (offset + buffer.size <= range.lower) break;
      if (range.upper > offset) offset = (range.upper + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
    }
    placed.add(index, offset);
  }
  return placed.take_offsets();
}

std::vector<std::int64_t> fit_into_gaps(std::span<const LayoutBuffer> buffers, const LayoutSections& sections) {
  const auto life = [&](std::int32_t i) {
    return static_cast<double>(sections.spans[gap_index(i)].upper - sections.spans[gap_index(i)].lower);
  };
  const auto size = [&](std::int32_t i) { return static_cast<double>(buffers[gap_index(i)].size); };
  const std::function<double(std::int32_t)> keys[] = {
      size, [&](std::int32_t i) { return size(i) * life(i); }, life,
      [&](std::int32_t i) { return -static_cast<double>(sections.spans[gap_index(i)].lower); }};
  std::vector<std::int64_t> best;
  std::int64_t least = 0;
  for (const auto& key : keys) {
    std::vector<std::int32_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return key(a) > key(b); });
    std::vector<std::int64_t> offsets = fit_into_gaps(buffers, sections, order);
    std::int64_t height = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + buffers[i].size);
    if (!best.empty() && height >= least) continue;
    least = height;
    best = std::move(offsets);
  }
  return best;
}

}  // namespace spillway::planners
