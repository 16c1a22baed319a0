#include "planners/order/roam_layout.h"

#include <algorithm>
#include <utility>

namespace spillway::planners {
namespace {

class Merge {
 public:
  Merge(std::span<const LayoutBuffer> buffers, std::span<const RoamLeaf> leaves, std::size_t loss,
        const RoamLayoutOptions& options)
      : buffers_(buffers), leaves_(leaves), loss_(static_cast<std::int64_t>(loss)), options_(options) {
    layout_.offsets.assign(buffers.size(), 0);
  }

  RoamLayout run() {
    const std::vector<std::vector<std::size_t>> members = members_of_leaves();
    for (const std::vector<std::size_t>& leaf : members) {
      lay_out(leaf);
      stack(leaf);
    }
    place_evicted();
    slide();
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      layout_.height = std::max(layout_.height, layout_.offsets[i] + buffers_[i].size);
    return std::move(layout_);
  }

 private:
  [[nodiscard]] bool activation(std::size_t i) const {
    return buffers_[i].lower < loss_ && buffers_[i].upper - 1 > loss_;
  }
  [[nodiscard]] std::int64_t top(std::size_t i) const { return layout_.offsets[i] + buffers_[i].size; }
  [[nodiscard]] bool together(std::size_t a, std::size_t b) const {
    return buffers_[a].lower < buffers_[b].upper && buffers_[b].lower < buffers_[a].upper;
  }
  [[nodiscard]] bool overlap(std::size_t a, std::size_t b) const {
    return together(a, b) && layout_.offsets[a] < top(b) && layout_.offsets[b] < top(a);
  }

  // What the forward pass makes belongs to the leaf that frees it, everything else to the leaf that makes it.
  [[nodiscard]] std::vector<std::vector<std::size_t>> members_of_leaves() const {
    const auto leaf_at = [&](std::int64_t step) {
      const auto at = static_cast<std::size_t>(step);
      for (std::size_t l = 0; l < leaves_.size(); ++l)
        if ((at >= leaves_[l].forward_begin && at < leaves_[l].forward_end) ||
            (at >= leaves_[l].backward_begin && at < leaves_[l].backward_end))
          return l;
      return leaves_.size() - 1;
    };
    std::vector<std::vector<std::size_t>> members(leaves_.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      members[leaf_at(buffers_[i].lower <= loss_ ? buffers_[i].upper - 1 : buffers_[i].lower)].push_back(i);
    return members;
  }

  // Addresses from 0 for one leaf's buffers.
  void lay_out(const std::vector<std::size_t>& leaf) {
    std::vector<std::size_t> stacked;
    for (const std::size_t i : leaf)
      if (activation(i)) stacked.push_back(i);
    std::stable_sort(stacked.begin(), stacked.end(),
                     [&](std::size_t a, std::size_t b) { return buffers_[a].upper > buffers_[b].upper; });
    std::vector<LayoutBuffer> problem;
    std::int64_t bottom = 0;
    for (const std::size_t i : stacked) {
      layout_.offsets[i] = bottom;
      bottom += buffers_[i].size;
    }
    for (const std::size_t i : leaf) {
      problem.push_back(buffers_[i]);
      if (activation(i)) problem.back().fixed_offset = layout_.offsets[i];
    }
    LayoutOptions options;
    options.effort = options_.leaf_effort;
    options.threads = 1;
    const LayoutResult result = solve_layout(problem, options);
    for (std::size_t k = 0; k < leaf.size(); ++k) layout_.offsets[leaf[k]] = result.offsets[k];
  }

  // Lifts a leaf onto the activations of those before and settles its conflicts with them.
  void stack(const std::vector<std::size_t>& leaf) {
    std::vector<std::size_t> order = leaf;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(!activation(a), -buffers_[a].size) < std::pair(!activation(b), -buffers_[b].size);
    });
    const std::int64_t base = base_;
    for (const std::size_t i : order) {
      layout_.offsets[i] += base;
      settle(i);
      if (activation(i)) base_ = std::max(base_, top(i));
    }
  }

  void settle(std::size_t i) {
    std::vector<std::size_t> met;
    for (const std::size_t other : placed_)
      if (overlap(i, other)) met.push_back(other);
    std::stable_sort(met.begin(), met.end(),
                     [&](std::size_t a, std::size_t b) { return buffers_[a].size > buffers_[b].size; });
    for (const std::size_t other : met) {
      const bool smaller = buffers_[other].size < buffers_[i].size;
      const bool outweighed = activation(i) && static_cast<double>(buffers_[other].size) <
                                                   options_.eviction_ratio * static_cast<double>(buffers_[i].size);
      if (!smaller && !outweighed) {
        evicted_.push_back(i);
        return;
      }
      evicted_.push_back(other);
      placed_.erase(std::find(placed_.begin(), placed_.end(), other));
    }
    placed_.push_back(i);
  }

  // The lowest offset of at least `floor` where nothing of `others` is in the way.
  [[nodiscard]] std::int64_t lowest_hole(std::size_t i, std::int64_t floor,
                                         const std::vector<std::size_t>& others) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const std::size_t other : others)
      if (other != i && together(i, other)) taken.emplace_back(layout_.offsets[other], top(other));
    std::sort(taken.begin(), taken.end());
    std::int64_t offset = floor;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + buffers_[i].size) break;
      offset = std::max(offset, end);
    }
    return offset;
  }

  void place_evicted() {
    layout_.evicted = evicted_.size();
    std::stable_sort(evicted_.begin(), evicted_.end(),
                     [&](std::size_t a, std::size_t b) { return buffers_[a].size > buffers_[b].size; });
    const std::vector<std::size_t> kept = placed_;
    for (const std::size_t i : evicted_) {
      std::int64_t floor = 0;
      for (const std::size_t other : kept)
        if (together(i, other)) floor = std::max(floor, top(other));
      layout_.offsets[i] = lowest_hole(i, floor, placed_);
      placed_.push_back(i);
    }
  }

  void slide() {
    std::vector<std::size_t> order = placed_;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return layout_.offsets[a] < layout_.offsets[b]; });
    for (const std::size_t i : order) layout_.offsets[i] = std::min(layout_.offsets[i], lowest_hole(i, 0, placed_));
  }

  std::span<const LayoutBuffer> buffers_;
  std::span<const RoamLeaf> leaves_;
  std::int64_t loss_;
  const RoamLayoutOptions& options_;
  RoamLayout layout_;
  std::int64_t base_ = 0;                      // top of the activations so far
  std::vector<std::size_t> placed_, evicted_;  // buffers
};

}  // namespace

RoamLayout roam_layout(std::span<const LayoutBuffer> buffers, std::span<const RoamLeaf> leaves, std::size_t loss,
                       const RoamLayoutOptions& options) {
  return Merge(buffers, leaves, loss, options).run();
}

}  // namespace spillway::planners
