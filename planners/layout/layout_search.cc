#include "planners/layout/layout_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/input_error.h"
#include "base/splitmix64.h"

namespace spillway::planners {
namespace {

constexpr std::int32_t none = -1;
constexpr std::int32_t beyond = std::numeric_limits<std::int32_t>::max() / 2;  // any capacity
constexpr std::size_t failure_slots = std::size_t{1} << 16;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// The two inner loops of the search, over the sections of an item; written for the vectoriser. Integers alone, so that
// the answer is the same whichever version a machine runs.
#if defined(__x86_64__)
#define SPILLWAY_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define SPILLWAY_WIDE_VECTORS
#endif

// Where the item comes to lie if it can't be next in some sections.
SPILLWAY_WIDE_VECTORS std::int32_t raised_bound(std::int32_t bound, const std::int32_t* __restrict latest,
                                                const std::int32_t* __restrict lowest_top, std::int32_t count) {
  std::int32_t raised = bound;
  for (std::int32_t s = 0; s < count; ++s) raised = std::max(raised, bound > latest[s] ? lowest_top[s] : 0);
  return raised;
}

// Stacks the item onto the chains of its sections; the highest top.
SPILLWAY_WIDE_VECTORS std::int32_t stack(std::int32_t bound, std::int32_t size, std::int32_t* __restrict top,
                                         std::int32_t* __restrict lowest_top, std::int32_t count) {
  std::int32_t highest = 0;
  for (std::int32_t s = 0; s < count; ++s) {
    top[s] = std::max(top[s], bound) + size;
    highest = std::max(highest, top[s]);
    lowest_top[s] = std::min(lowest_top[s], bound + size);
  }
  return highest;
}

}  // namespace

std::int64_t LayoutSearch::unit_of(std::span<const LayoutBuffer> buffers) {
  std::int64_t unit = 0;
  for (const LayoutBuffer& buffer : buffers) {
    unit = std::gcd(unit, buffer.size);
    if (buffer.fixed_offset >= 0)
      unit = std::gcd(unit, buffer.fixed_offset);
    else if (buffer.alignment > 1)
      unit = std::gcd(unit, buffer.alignment);
  }
  return std::max<std::int64_t>(unit, 1);
}

LayoutSearch::LayoutSearch(std::span<const LayoutBuffer> buffers, const LayoutSections& sections,
                           LayoutSearchRules rules)
    : rules_(rules), unit_(unit_of(buffers)), sections_(sections.count) {
  const auto count = static_cast<Int>(buffers.size());
  std::vector<std::vector<Int>> members(at(sections_));  // of each section, by what is born there
  for (Int i = 0; i < count; ++i) {
    const LayoutBuffer& buffer = buffers[at(i)];
    const SectionSpan span = sections.spans[at(i)];
    const bool fixed = buffer.fixed_offset >= 0;
    all_.push_back({span.lower, span.upper, static_cast<Int>(buffer.size / unit_),
                    fixed || buffer.alignment == 1 ? 1 : static_cast<Int>(buffer.alignment / unit_),
                    fixed ? static_cast<Int>(buffer.fixed_offset / unit_) : none, none});
    members[at(span.lower)].push_back(i);
  }
  std::vector<std::vector<Int>> neighbours(at(count));
  std::vector<Int> alive;
  for (Int s = 0; s < sections_; ++s) {
    std::erase_if(alive, [&](Int i) { return all_[at(i)].upper <= s; });
    for (const Int born : members[at(s)]) {
      for (const Int other : alive) {
        neighbours[at(other)].push_back(born);
        neighbours[at(born)].push_back(other);
      }
      alive.push_back(born);
    }
  }
  neighbours_begin_.push_back(0);
  for (const std::vector<Int>& list : neighbours) {
    neighbours_.insert(neighbours_.end(), list.begin(), list.end());
    neighbours_begin_.push_back(static_cast<Int>(neighbours_.size()));
  }
  blame_.assign(at(sections_), 1);
  if (rules_.memory) failures_.resize(failure_slots);
}

void LayoutSearch::restart(std::int64_t capacity, std::span<const std::int32_t> rank, LayoutChoice choice) {
  if (capacity != given_capacity_) std::fill(failures_.begin(), failures_.end(), Failure());
  given_capacity_ = capacity;
  capacity_ = static_cast<Int>(capacity / unit_);
  choice_ = choice;
  rank_.assign(rank.begin(), rank.end());
  state_ = State::running;
  for (float& blame : blame_) blame = 1 + 0.9F * (blame - 1);
  begin();
}

void LayoutSearch::begin() {
  const std::size_t count = all_.size(), sections = at(sections_);
  offset_.assign(count, none);
  head_.assign(count, 0);
  skipped_.assign(count, none);
  bound_.assign(count, 0);
  placed_.assign(count, 0);
  floor_.assign(sections, 0);
  latest_.assign(sections, capacity_);
  lowest_top_.assign(sections, 0);
  top_.assign(sections, 0);
  count_.assign(sections, 0);
  crossing_.assign(sections + 1, 0);
  frames_.clear();
  partings_.clear();
  parts_.clear();
  old_heads_.clear();
  old_skips_.clear();
  old_floors_.clear();
  items_.resize(count);
  std::iota(items_.begin(), items_.end(), 0);
  std::sort(items_.begin(), items_.end(), [&](Int a, Int b) { return rank_[at(a)] < rank_[at(b)]; });
  std::map<std::tuple<Int, Int, Int, Int>, Int> last;  // of the items that are alike
  for (const Int i : items_) {
    Item& item = all_[at(i)];
    if (item.fixed != none) head_[at(i)] = item.fixed;
    for (Int s = item.lower; s < item.upper; ++s) latest_[at(s)] -= item.size;
    for (Int s = item.lower + 1; s < item.upper; ++s) ++crossing_[at(s)];
    item.twin = none;
    if (!rules_.twins || item.fixed != none) continue;
    const auto [like, first] = last.try_emplace({item.lower, item.upper, item.size, item.alignment}, i);
    if (!first) item.twin = std::exchange(like->second, i);
  }
  for (Int s = 0; s < sections_; ++s)
    if (latest_[at(s)] < 0) state_ = State::infeasible;
  Int from = 0;
  for (Int s = 1; s <= sections_; ++s) {
    if (s < sections_ && crossing_[at(s)] > 0) continue;
    parts_.emplace_back(from, s);
    from = s;
  }
  partings_.push_back({none, none, 0, static_cast<Int>(parts_.size()), 0});
  if (state_ == State::running && !next_part(0)) state_ = State::found;
}

LayoutSearch::Int LayoutSearch::aligned(Int offset, const Item& item) const {
  if (item.alignment == 1) return offset;
  return (offset + item.alignment - 1) / item.alignment * item.alignment;
}

// A new frame with the unplaced items of its sections, in the order they had.
void LayoutSearch::push(Int lower, Int upper, Int parent, Int part) {
  const Int source = parent != none ? parent : partings_[at(part)].creator;
  const Int from = source == none ? 0 : frames_[at(source)].begin;
  const Int count = source == none ? static_cast<Int>(all_.size()) : frames_[at(source)].count;
  const auto begin = static_cast<Int>(items_.size());
  for (Int i = from; i < from + count; ++i) {
    const Item& item = all_[at(items_[at(i)])];
    if (placed_[at(items_[at(i)])] == 0 && item.lower >= lower && item.upper <= upper) {
      const Int index = items_[at(i)];
      items_.push_back(index);
    }
  }
  frames_.push_back({lower, upper, begin, static_cast<Int>(items_.size()) - begin, parent, part,
                     static_cast<Int>(old_heads_.size()), static_cast<Int>(old_floors_.size()),
                     static_cast<Int>(old_skips_.size()), none, false, 0, 0});
}

void LayoutSearch::pop() {
  const Frame& frame = frames_.back();
  for (; old_skips_.size() > at(frame.skips); old_skips_.pop_back())
    skipped_[at(old_skips_.back().first)] = old_skips_.back().second;
  items_.resize(at(frame.begin));
  frames_.pop_back();
}

// Begins the next stretch of a parting, or of the one around it; false when all is placed.
bool LayoutSearch::next_part(Int part) {
  for (; part != none; part = partings_[at(part)].parent) {
    Parting& parting = partings_[at(part)];
    if (parting.next == parting.count) continue;
    const auto [lower, upper] = parts_[at(parting.begin + parting.next)];
    ++parting.next;
    push(lower, upper, none, part);
    return true;
  }
  return false;
}

void LayoutSearch::place(Frame& frame, Int index) {
  const Item& item = all_[at(index)];
  frame.placed = index;
  frame.heads = static_cast<Int>(old_heads_.size());
  frame.floors = static_cast<Int>(old_floors_.size());
  const Int top = head_[at(index)] + item.size;
  offset_[at(index)] = head_[at(index)];
  placed_[at(index)] = 1;
  for (Int s = item.lower; s < item.upper; ++s) {
    old_floors_.push_back(floor_[at(s)]);
    floor_[at(s)] = top;
    latest_[at(s)] += item.size;
  }
  for (Int s = item.lower + 1; s < item.upper; ++s) --crossing_[at(s)];
  frame.alone = true;
  for (Int n = neighbours_begin_[at(index)]; n < neighbours_begin_[at(index) + 1]; ++n) {
    const Int other = neighbours_[at(n)];
    if (placed_[at(other)] != 0) continue;
    frame.alone = false;
    if (head_[at(other)] >= top) continue;
    old_heads_.emplace_back(other, head_[at(other)]);
    head_[at(other)] = aligned(top, all_[at(other)]);
  }
}

void LayoutSearch::unplace(Frame& frame) {
  const Item& item = all_[at(frame.placed)];
  for (; old_heads_.size() > at(frame.heads); old_heads_.pop_back())
    head_[at(old_heads_.back().first)] = old_heads_.back().second;
  for (Int s = item.lower; s < item.upper; ++s) {
    floor_[at(s)] = old_floors_[at(frame.floors + s - item.lower)];
    latest_[at(s)] -= item.size;
  }
  for (Int s = item.lower + 1; s < item.upper; ++s) ++crossing_[at(s)];
  old_floors_.resize(at(frame.floors));
  placed_[at(frame.placed)] = 0;
  frame.placed = none;
}

// After a placement: on to what is left of the frame's stretch, in parts if it has fallen apart.
void LayoutSearch::descend(Int index) {
  const Frame frame = frames_[at(index)];
  const Item& item = all_[at(frame.placed)];
  const auto begin = static_cast<Int>(parts_.size());
  Int from = frame.lower;
  for (Int s = frame.lower + 1; s <= frame.upper; ++s) {
    const bool parted = rules_.parting ? s > item.lower && s < item.upper && crossing_[at(s)] == 0 : false;
    if (s < frame.upper && !parted) continue;
    bool inhabited = false;
    for (Int t = from; t < s && !inhabited; ++t) inhabited = latest_[at(t)] < capacity_;
    if (inhabited) parts_.emplace_back(from, s);
    from = s;
  }
  const Int count = static_cast<Int>(parts_.size()) - begin;
  if (count > 1) {
    partings_.push_back({index, frame.part, begin, count, 0});
    next_part(static_cast<Int>(partings_.size()) - 1);
    return;
  }
  const std::pair<Int, Int> part = count == 1 ? parts_.back() : std::pair<Int, Int>();
  parts_.resize(at(begin));
  if (count == 1)
    push(part.first, part.second, index, frame.part);
  else if (!next_part(frame.part))
    state_ = State::found;
}

// Undoes every frame above the given one, and its own placement.
void LayoutSearch::unwind(Int index) {
  while (static_cast<Int>(frames_.size()) - 1 > index) {
    if (frames_.back().placed != none) unplace(frames_.back());
    pop();
  }
  while (partings_.back().creator >= index && partings_.back().creator != none) {
    parts_.resize(at(partings_.back().begin));
    partings_.pop_back();
  }
  unplace(frames_[at(index)]);
}

// The last frame can't be completed: back to the placement to blame, which is skipped.
void LayoutSearch::fail() {
  while (true) {
    const Frame& failed = frames_.back();
    if (rules_.memory) remember(failed);
    const Int blamed = failed.parent != none ? failed.parent : partings_[at(failed.part)].creator;
    if (blamed == none) {
      state_ = State::infeasible;
      return;
    }
    const Int item = frames_[at(blamed)].placed;
    const bool alone = frames_[at(blamed)].alone;
    unwind(blamed);
    if (alone || all_[at(item)].fixed != none) continue;
    old_skips_.emplace_back(item, skipped_[at(item)]);
    skipped_[at(item)] = head_[at(item)];
    return;
  }
}

bool LayoutSearch::known_failure(Frame& frame) {
  frame.key = frame.check = 0;
  for (Int i = frame.begin; i < frame.begin + frame.count; ++i) {
    const auto item = static_cast<std::uint64_t>(items_[at(i)]);
    const std::uint64_t mixed = splitmix64(item << 32 | static_cast<std::uint32_t>(head_[item]));
    frame.key += mixed;
    frame.check += splitmix64(mixed);
  }
  const Failure& failure = failures_[frame.key % failure_slots];
  return failure.key == frame.key && failure.check == frame.check;
}

void LayoutSearch::remember(const Frame& frame) { failures_[frame.key % failure_slots] = {frame.key, frame.check}; }

// By bound, then by the order; nearly sorted already, from the frame before.
void LayoutSearch::sort_by_bound(const Frame& frame) {
  Int* const list = &items_[at(frame.begin)];
  keys_.resize(at(frame.count));
  std::uint64_t* const keys = keys_.data();
  for (Int i = 0; i < frame.count; ++i) {
    const Int item = list[i];
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(bound_[at(item)])} << 32 | static_cast<std::uint32_t>(rank_[at(item)]);
    Int j = i;
    for (; j > 0 && key < keys[j - 1]; --j) {
      keys[j] = keys[j - 1];
      list[j] = list[j - 1];
    }
    keys[j] = key;
    list[j] = item;
  }
}

// Bounds of the unplaced items: their heads, or for skipped ones the lowest top they can come to lie on.
bool LayoutSearch::raise_skipped(const Frame& frame) {
  const Int* const list = &items_[at(frame.begin)];
  for (Int i = 0; i < frame.count; ++i) bound_[at(list[i])] = head_[at(list[i])];
  for (Int i = 0; i < frame.count; ++i) {
    const Int index = list[i];
    if (skipped_[at(index)] != head_[at(index)]) continue;
    Int lowest = beyond;
    for (Int n = neighbours_begin_[at(index)]; n < neighbours_begin_[at(index) + 1]; ++n) {
      const Int other = neighbours_[at(n)];
      if (placed_[at(other)] == 0) lowest = std::min(lowest, bound_[at(other)] + all_[at(other)].size);
    }
    bound_[at(index)] = aligned(lowest, all_[at(index)]);
  }
  for (Int i = 0; i < frame.count; ++i) {
    const Item& item = all_[at(list[i])];
    if (bound_[at(list[i])] > capacity_ - item.size || (item.fixed != none && head_[at(list[i])] > item.fixed))
      return false;
  }
  return true;
}

// Stacks the items of each section by their bounds, and raises bounds on the way: an item too high to come next in some
// section lies at least on the lowest top of those that can.
bool LayoutSearch::chain(const Frame& frame) {
  Int* const list = &items_[at(frame.begin)];
  std::copy(floor_.begin() + frame.lower, floor_.begin() + frame.upper, top_.begin() + frame.lower);
  std::fill(lowest_top_.begin() + frame.lower, lowest_top_.begin() + frame.upper, rules_.next ? beyond : 0);
  for (Int i = 0; i < frame.count;) {
    const Int index = list[i];
    const Item& item = all_[at(index)];
    const Int bound = bound_[at(index)];
    const Int width = item.upper - item.lower;
    const Int raised = raised_bound(bound, &latest_[at(item.lower)], &lowest_top_[at(item.lower)], width);
    if (raised > bound) {  // takes its new place in the order
      if (item.fixed != none || raised > capacity_ - item.size) return false;
      const Int higher = aligned(raised, item);
      bound_[at(index)] = higher;
      Int j = i;
      for (; j + 1 < frame.count && bound_[at(list[j + 1])] < higher; ++j) list[j] = list[j + 1];
      list[j] = index;
      continue;
    }
    if (stack(bound, item.size, &top_[at(item.lower)], &lowest_top_[at(item.lower)], width) > capacity_) {
      blame(item);
      return false;
    }
    ++i;
  }
  return true;
}

// The sections where the item's chains were too high.
void LayoutSearch::blame(const Item& item) {
  if (!rules_.blame) return;
  for (Int s = item.lower; s < item.upper; ++s)
    if (top_[at(s)] > capacity_) blame_[at(s)] += 0.1F;
}

// May be placed at its head now, but for what can slip under.
bool LayoutSearch::open(Int index) const {
  const Int twin = all_[at(index)].twin;
  return bound_[at(index)] == head_[at(index)] && skipped_[at(index)] != head_[at(index)] &&
         (twin == none || placed_[at(twin)] != 0);
}

bool LayoutSearch::nothing_slips_under(Int index) const {
  for (Int n = neighbours_begin_[at(index)]; n < neighbours_begin_[at(index) + 1]; ++n) {
    const Int other = neighbours_[at(n)];
    if (placed_[at(other)] == 0 && bound_[at(other)] + all_[at(other)].size <= head_[at(index)]) return false;
  }
  return true;
}

LayoutSearch::Int LayoutSearch::lowest(const Frame& frame) const {
  for (Int i = frame.begin; i < frame.begin + frame.count; ++i)
    if (open(items_[at(i)])) return items_[at(i)];
  return none;
}

LayoutSearch::Int LayoutSearch::tightest(const Frame& frame) const {
  const Int* const list = &items_[at(frame.begin)];
  Int least_top = std::numeric_limits<Int>::max();
  for (Int i = 0; i < frame.count && bound_[at(list[i])] < least_top; ++i)
    least_top = std::min(least_top, bound_[at(list[i])] + all_[at(list[i])].size);
  Int best = none;
  float least = std::numeric_limits<float>::infinity();
  for (Int i = 0; i < frame.count && bound_[at(list[i])] < least_top; ++i) {
    if (!open(list[i])) continue;
    const Item& item = all_[at(list[i])];
    for (Int s = item.lower; s < item.upper; ++s) {
      const float slack = static_cast<float>(capacity_ - top_[at(s)] + 1) / blame_[at(s)];
      if (slack >= least) continue;
      least = slack;
      best = list[i];
    }
  }
  return best;
}

LayoutSearch::Int LayoutSearch::narrowest(const Frame& frame) {
  const Int* const list = &items_[at(frame.begin)];
  for (Int s = frame.lower; s < frame.upper; ++s) count_[at(s)] = 0;
  for (Int i = 0; i < frame.count; ++i) {
    const Item& item = all_[at(list[i])];
    for (Int s = item.lower; s < item.upper; ++s) count_[at(s)] += bound_[at(list[i])] <= latest_[at(s)] ? 1 : 0;
  }
  constexpr int sections_tried = 6;
  for (int tried = 0; tried < sections_tried; ++tried) {
    Int section = none;
    for (Int s = frame.lower; s < frame.upper; ++s)
      if (count_[at(s)] > 0 && (section == none || count_[at(s)] < count_[at(section)])) section = s;
    if (section == none) break;
    for (Int i = 0; i < frame.count && bound_[at(list[i])] <= latest_[at(section)]; ++i) {
      const Item& item = all_[at(list[i])];
      if (item.lower <= section && section < item.upper && open(list[i]) && nothing_slips_under(list[i]))
        return list[i];
    }
    count_[at(section)] = 0;
  }
  return lowest(frame);
}

// The item to try next, or none if the frame can't be completed.
LayoutSearch::Int LayoutSearch::choose(Frame& frame) {
  if (!raise_skipped(frame)) return none;
  sort_by_bound(frame);
  if (!chain(frame)) return none;
  switch (choice_) {
    case LayoutChoice::lowest:
      return lowest(frame);
    case LayoutChoice::tightest:
      return tightest(frame);
    case LayoutChoice::narrowest:
      return narrowest(frame);
  }
  return none;
}

LayoutSearch::State LayoutSearch::run(std::int64_t effort) {
  for (const std::int64_t end = effort_ + effort; state_ == State::running && effort_ < end; ++effort_) {
    const auto index = static_cast<Int>(frames_.size()) - 1;
    Frame& frame = frames_.back();
    const bool fresh = old_skips_.size() == at(frame.skips);
    const Int item = rules_.memory && fresh && known_failure(frame) ? none : choose(frame);
    if (item == none) {
      fail();
      continue;
    }
    place(frame, item);
    descend(index);
  }
  return state_;
}

std::vector<std::int64_t> LayoutSearch::offsets() const {
  SPILLWAY_ASSERT(state_ == State::found);
  std::vector<std::int64_t> offsets;
  offsets.reserve(offset_.size());
  for (const Int offset : offset_) offsets.push_back(offset * unit_);
  return offsets;
}

}  // namespace spillway::planners
