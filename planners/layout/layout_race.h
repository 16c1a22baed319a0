// Several exhaustive searches for the same height, racing.
//
// A search's time depends wildly on its order: 2 milliseconds to hours on the public instances. No order is therefore
// trusted for long. Racers with different ways of choosing restart from orders width^p size^q noise, drawn each time,
// with limits in Luby's sequence. Each racer begins with one of MiniMalloc's three static orders.
//
// Source of the limits: Luby, Sinclair and Zuckerman, Information Processing Letters 47(4), 1993.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "planners/layout/layout_budget.h"
#include "planners/layout/layout_search.h"

namespace spillway::planners {

class LayoutRace {
 public:
  // As for LayoutSearch. The options must outlive this.
  LayoutRace(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, const LayoutOptions& options);

  // Searches a layout of at most `capacity`: found, proven infeasible, or still running when `effort` or the budget is
  // spent. The progress callback gets `height` and `lower_bound`.
  LayoutSearch::State run(std::int64_t capacity, std::int64_t effort, LayoutBudget& budget, std::int64_t height,
                          std::int64_t lower_bound);
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offsets_; }  // once found

  // Whether the searches would fit the memory and the integers they work with.
  static bool can_handle(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, std::int64_t height);

 private:
  struct Racer {
    LayoutSearch search;
    std::uint64_t run = 0;    // of this racer, this time
    std::uint64_t drawn = 0;  // before, at this height: no order is searched for one twice
    std::int64_t left = 0;    // nodes until it restarts
    std::vector<std::int32_t> rank;
  };

  void advance(std::size_t racer, std::int64_t capacity, std::int64_t slice, std::atomic<std::size_t>& finished);
  void restart(std::size_t racer, std::int64_t capacity);
  [[nodiscard]] std::vector<std::int32_t> static_order(std::size_t which) const;
  [[nodiscard]] std::vector<std::int32_t> drawn_order(std::uint64_t seed) const;

  std::span<const LayoutBuffer> buffers_;
  const LayoutSections& sections_;
  const LayoutOptions& options_;
  std::int64_t slice_ = 0, node_effort_ = 1;  // nodes between the ends of a race; effort of one
  std::vector<Racer> racers_;
  std::map<std::int64_t, std::vector<std::uint64_t>> drawn_;  // by height, by racer
  std::vector<std::int64_t> offsets_;
};

}  // namespace spillway::planners
