#include "planners/layout/layout_solver.h"

#include <algorithm>

#include "base/input_error.h"
#include "planners/layout/gap_fit.h"
#include "planners/layout/layout_budget.h"
#include "planners/layout/layout_race.h"
#include "planners/layout/layout_sections.h"
#include "planners/layout/skyline_wheel.h"

namespace spillway::planners {
namespace {

// A stretch of time whose buffers meet none outside it, and the best layout of it.
struct Stretch {
  std::vector<std::size_t> members;  // in the caller's numbering
  std::vector<LayoutBuffer> buffers;
  LayoutSections sections;
  std::vector<std::int64_t> offsets;
  std::int64_t height = 0, lower_bound = 0, unit = 1;

  void measure() {
    height = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) height = std::max(height, offsets[i] + buffers[i].size);
  }
};

std::int64_t round_up(std::int64_t amount, std::int64_t unit) { return (amount + unit - 1) / unit * unit; }

// What no layout can be lower than: all that is alive at once, in the steps that heights come in.
std::int64_t plain_bound(std::span<const LayoutBuffer> buffers, const LayoutSections& sections) {
  std::int64_t bound = sections.max_live();
  for (const LayoutBuffer& buffer : buffers)
    if (buffer.fixed_offset >= 0) bound = std::max(bound, buffer.fixed_offset + buffer.size);
  return round_up(bound, LayoutSearch::unit_of(buffers));
}

// The stretches that are higher than `goal`, the highest first.
std::vector<Stretch> high_stretches(std::span<const LayoutBuffer> buffers, const LayoutSections& sections,
                                    std::span<const std::int64_t> offsets, std::int64_t goal) {
  std::vector<std::int32_t> stretch_at(static_cast<std::size_t>(sections.count));
  for (std::size_t p = 0; p + 1 < sections.partings.size(); ++p)
    std::fill(stretch_at.begin() + sections.partings[p], stretch_at.begin() + sections.partings[p + 1],
              static_cast<std::int32_t>(p));
  std::vector<std::int64_t> heights(sections.partings.size(), 0);
  const auto stretch_of = [&](std::size_t i) {
    return static_cast<std::size_t>(stretch_at[static_cast<std::size_t>(sections.spans[i].lower)]);
  };
  for (std::size_t i = 0; i < buffers.size(); ++i)
    heights[stretch_of(i)] = std::max(heights[stretch_of(i)], offsets[i] + buffers[i].size);
  std::vector<Stretch> stretches;
  std::vector<std::size_t> index(heights.size());
  for (std::size_t p = 0; p < heights.size(); ++p) {
    if (heights[p] <= goal) continue;
    index[p] = stretches.size();
    stretches.emplace_back();
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (heights[stretch_of(i)] <= goal) continue;
    Stretch& stretch = stretches[index[stretch_of(i)]];
    stretch.members.push_back(i);
    stretch.buffers.push_back(buffers[i]);
    stretch.offsets.push_back(offsets[i]);
  }
  for (Stretch& stretch : stretches) {
    stretch.sections = sections_of(stretch.buffers);
    stretch.unit = LayoutSearch::unit_of(stretch.buffers);
    stretch.lower_bound = plain_bound(stretch.buffers, stretch.sections);
    stretch.measure();
  }
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.height > b.height; });
  return stretches;
}

// Searches one stretch for layouts down to `goal`, which is at least its lower bound.
class Descent {
 public:
  Descent(Stretch& stretch, std::int64_t goal, const LayoutOptions& options, LayoutBudget& budget)
      : stretch_(stretch), goal_(goal), budget_(budget), race_(stretch.buffers, stretch.sections, options) {}

  // For a capacity alone, or as low as it goes.
  void run(bool capacity_given) {
    if (capacity_given) {
      attempt(goal_ / stretch_.unit * stretch_.unit, budget_.left());
      return;
    }
    constexpr std::int64_t first_effort = 60'000;
    for (std::int64_t effort = first_effort; open(); effort *= 2) sweep(effort);
  }

 private:
  [[nodiscard]] bool open() const {
    return stretch_.height > std::max(goal_, stretch_.lower_bound) && budget_.left() > 0 && !budget_.stopped();
  }

  // The lowest height first, then by halves what lies between the heights that took too long and the best.
  void sweep(std::int64_t effort) {
    const std::int64_t unit = stretch_.unit;
    std::int64_t too_hard = std::max(goal_ / unit * unit, stretch_.lower_bound);
    attempt(too_hard, effort);
    while (open() && too_hard + unit < stretch_.height) {
      too_hard = std::max(too_hard, stretch_.lower_bound - unit);
      const std::int64_t half = (stretch_.height - too_hard) / 2 / unit * unit;
      const std::int64_t capacity = too_hard + std::max(unit, half);
      if (capacity >= stretch_.height) break;
      if (!attempt(capacity, effort)) too_hard = capacity;
    }
  }

  // True when a layout was found.
  bool attempt(std::int64_t capacity, std::int64_t effort) {
    switch (race_.run(capacity, effort, budget_, stretch_.height, stretch_.lower_bound)) {
      case LayoutSearch::State::found:
        stretch_.offsets = race_.offsets();
        stretch_.measure();
        return true;
      case LayoutSearch::State::infeasible:
        stretch_.lower_bound = std::max(stretch_.lower_bound, capacity + stretch_.unit);
        return false;
      case LayoutSearch::State::running:
        return false;
    }
    return false;
  }

  Stretch& stretch_;
  std::int64_t goal_;
  LayoutBudget& budget_;
  LayoutRace race_;
};

// The first layout, and what repeated packing makes of it.
std::vector<std::int64_t> pack(std::span<const LayoutBuffer> buffers, const LayoutSections& sections, std::int64_t goal,
                               const LayoutOptions& options, LayoutBudget& budget) {
  const bool any_fixed =
      std::any_of(buffers.begin(), buffers.end(), [](const LayoutBuffer& buffer) { return buffer.fixed_offset >= 0; });
  if (any_fixed) {
    budget.spend(static_cast<std::int64_t>(buffers.size()) * 4);
    return fit_into_gaps(buffers, sections);
  }
  // Enough where packing alone gets there; the search does the rest, and a given capacity is its work.
  const std::int64_t passes = options.capacity > 0 ? 20 : 60;
  const bool searchable = LayoutRace::can_handle(buffers, sections, 2 * sections.max_live());
  const std::int64_t effort =
      searchable ? std::min(options.effort / 4, passes * static_cast<std::int64_t>(buffers.size())) : options.effort;
  return pack_repeatedly(buffers, sections, goal, effort, options, budget).offsets;
}

void check(std::span<const LayoutBuffer> buffers) {
  for (const LayoutBuffer& buffer : buffers)
    SPILLWAY_ASSERT(buffer.lower < buffer.upper && buffer.size >= 0 && buffer.alignment >= 1);
}

// Lowers the stretches one by one, each as far as it matters to the whole; what is proven of the worst holds for all.
void descend(std::vector<Stretch>& stretches, const LayoutOptions& options, LayoutBudget& budget, LayoutResult& result,
             std::span<const std::size_t> kept) {
  for (Stretch& stretch : stretches) {
    const std::int64_t goal = std::max(options.capacity, result.lower_bound);
    if (stretch.height > goal && LayoutRace::can_handle(stretch.buffers, stretch.sections, stretch.height))
      Descent(stretch, goal, options, budget).run(options.capacity > 0);
    result.lower_bound = std::max(result.lower_bound, stretch.lower_bound);
    for (std::size_t i = 0; i < stretch.members.size(); ++i)
      result.offsets[kept[stretch.members[i]]] = stretch.offsets[i];
  }
}

}  // namespace

LayoutResult solve_layout(std::span<const LayoutBuffer> buffers, const LayoutOptions& options) {
  check(buffers);
  LayoutBudget budget(options);
  LayoutResult result;
  result.offsets.assign(buffers.size(), 0);
  std::vector<LayoutBuffer> sized;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].fixed_offset > 0) {
      result.offsets[i] = buffers[i].fixed_offset;
      result.lower_bound = std::max(result.lower_bound, buffers[i].fixed_offset + buffers[i].size);
    }
    if (buffers[i].size == 0) continue;
    kept.push_back(i);
    sized.push_back(buffers[i]);
  }
  if (!sized.empty()) {
    const LayoutSections sections = sections_of(sized);
    result.lower_bound = std::max(result.lower_bound, plain_bound(sized, sections));
    const std::int64_t goal = std::max(options.capacity, result.lower_bound);
    const std::vector<std::int64_t> offsets = pack(sized, sections, goal, options, budget);
    for (std::size_t i = 0; i < kept.size(); ++i) result.offsets[kept[i]] = offsets[i];
    std::vector<Stretch> stretches = high_stretches(sized, sections, offsets, goal);
    if (options.capacity == 0 || options.capacity >= result.lower_bound)
      descend(stretches, options, budget, result, kept);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    result.height = std::max(result.height, result.offsets[i] + buffers[i].size);
  result.lower_bound = std::min(result.lower_bound, result.height);
  result.proven = result.height == result.lower_bound;
  result.stopped = budget.stopped();
  result.effort = budget.spent();
  return result;
}

}  // namespace spillway::planners
