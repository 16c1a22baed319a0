#include "planners/layout/layout_race.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/splitmix64.h"
#include "planners/layout/parallel_tasks.h"

namespace spillway::planners {
namespace {

constexpr std::size_t racer_count = 4;
constexpr std::int64_t first_limit = 2500, limit_unit = 500, between_looks = 128;  // nodes
constexpr std::int64_t first_slices = 16;  // the first slice is so much smaller: easy searches end soon

// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..., from 1.
std::int64_t luby(std::uint64_t i) {
  std::uint64_t power = 1;
  while (power - 1 < i) power *= 2;
  while (power - 1 != i) {
    i -= power / 2 - 1;
    for (power = 1; power - 1 < i;) power *= 2;
  }
  return static_cast<std::int64_t>(power / 2);
}

std::int64_t total_width(const LayoutSections& sections) {
  std::int64_t sum = 0;
  for (const SectionSpan& span : sections.spans) sum += span.upper - span.lower;
  return sum;
}

// Positions from a list in order.
std::vector<std::int32_t> rank_of(const std::vector<std::int32_t>& order) {
  std::vector<std::int32_t> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    rank[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  return rank;
}

}  // namespace

bool LayoutRace::can_handle(std::span<const LayoutBuffer> buffers, const LayoutSections& sections,
                            std::int64_t height) {
  constexpr std::int64_t largest_width = 4'000'000;
  constexpr std::size_t most_buffers = 4'000;
  const std::int64_t unit = LayoutSearch::unit_of(buffers);
  return buffers.size() <= most_buffers && height / unit < (std::int64_t{1} << 29) &&
         total_width(sections) <= largest_width;
}

LayoutRace::LayoutRace(std::span<const LayoutBuffer> buffers, const LayoutSections& sections,
                       const LayoutOptions& options)
    : buffers_(buffers), sections_(sections), options_(options) {
  racers_.assign(racer_count, Racer{LayoutSearch(buffers, sections), 0, 0, 0, {}});
  const std::int64_t width = total_width(sections);
  slice_ = std::clamp<std::int64_t>(8'000'000 / (width + 1000), 64, 4000);
  node_effort_ = 1 + width / 4096;
}

// MiniMalloc's orders: by width, area and the most ever alive beside, in three sequences.
std::vector<std::int32_t> LayoutRace::static_order(std::size_t which) const {
  using Key = std::array<double, 3>;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const auto width = static_cast<double>(buffers_[i].upper - buffers_[i].lower);
    const double area = width * static_cast<double>(buffers_[i].size);
    const SectionSpan span = sections_.spans[i];
    const auto most = static_cast<double>(
        *std::max_element(sections_.live.begin() + span.lower, sections_.live.begin() + span.upper));
    keys.push_back(which == 0 ? Key{most, width, area} : which == 1 ? Key{most, area, width} : Key{width, area, most});
  }
  std::vector<std::int32_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  return rank_of(order);
}

std::vector<std::int32_t> LayoutRace::drawn_order(std::uint64_t seed) const {
  SplitMix64 random(seed);
  const float by_width = 2 * random.uniform(), by_size = 2 * random.uniform(), mild = random.uniform(),
              noise = mild * mild * mild;
  std::vector<float> keys;
  for (const LayoutBuffer& buffer : buffers_)
    keys.push_back(by_width * std::log(static_cast<float>(buffer.upper - buffer.lower)) +
                   by_size * std::log(static_cast<float>(buffer.size)) + 1.4F * noise * random.bell());
  std::vector<std::int32_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  return rank_of(order);
}

void LayoutRace::restart(std::size_t number, std::int64_t capacity) {
  Racer& racer = racers_[number];
  const std::uint64_t run = racer.run++, drawn = racer.drawn + run;
  if (run == 0 && number < 3) {
    racer.left = first_limit;
    racer.search.restart(capacity, static_order(number), LayoutChoice::lowest);
    return;
  }
  racer.left = limit_unit * luby(std::max<std::uint64_t>(run, 1));
  racer.search.restart(capacity, drawn_order((options_.seed * racer_count + number) * 0x100000000U + drawn),
                       number % 2 == 0 ? LayoutChoice::tightest : LayoutChoice::narrowest);
}

// One slice of a racer's work, unless one ahead of it in the order has finished: that one's answer counts, however many
// threads there are.
void LayoutRace::advance(std::size_t number, std::int64_t capacity, std::int64_t slice,
                         std::atomic<std::size_t>& finished) {
  Racer& racer = racers_[number];
  for (std::int64_t left = slice; left > 0 && number < finished.load(std::memory_order_relaxed);) {
    if (racer.left <= 0) restart(number, capacity);
    const std::int64_t nodes = std::min({left, racer.left, between_looks});
    const std::int64_t before = racer.search.effort();
    if (racer.search.run(nodes) != LayoutSearch::State::running) {
      for (std::size_t seen = finished.load(); number < seen && !finished.compare_exchange_weak(seen, number);) {
      }
      return;
    }
    racer.left -= racer.search.effort() - before;
    left -= nodes;
  }
}

LayoutSearch::State LayoutRace::run(std::int64_t capacity, std::int64_t effort, LayoutBudget& budget,
                                    std::int64_t height, std::int64_t lower_bound) {
  std::vector<std::uint64_t>& drawn = drawn_.try_emplace(capacity, racers_.size(), 0).first->second;
  for (std::size_t i = 0; i < racers_.size(); ++i) {
    racers_[i].run = 0;
    racers_[i].drawn = drawn[i];
    racers_[i].left = 0;
  }
  std::int64_t slice = std::max<std::int64_t>(1, slice_ / first_slices);
  for (const std::int64_t end = budget.spent() + effort; budget.spent() < end && budget.goes_on(height, lower_bound);) {
    std::atomic<std::size_t> finished{racer_count};
    run_in_parallel(static_cast<int>(racer_count), options_.threads,
                    [&](int racer) { advance(static_cast<std::size_t>(racer), capacity, slice, finished); });
    budget.spend(static_cast<std::int64_t>(racer_count) * slice * node_effort_);
    for (std::size_t i = 0; i < racers_.size(); ++i) drawn[i] = racers_[i].drawn + racers_[i].run;
    if (finished < racer_count) {
      const LayoutSearch& search = racers_[finished].search;
      if (search.state() == LayoutSearch::State::found) offsets_ = search.offsets();
      return search.state();
    }
    slice = std::min(2 * slice, slice_);
  }
  return LayoutSearch::State::running;
}

}  // namespace spillway::planners
