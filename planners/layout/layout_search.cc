#include "planners/layout/layout_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/input_error.h"
#include "base/splitmix64.h"

namespace spillway::planners {
namespace {

constexpr std::int32_t none = -1;
constexpr std::size_t most_failure_slots = std::size_t{1} << 18;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

// Of an item with its head; those of a frame's items add up to the frame's.
struct Fingerprint {
  std::uint64_t key, check;
};
Fingerprint fingerprint(std::int32_t item, std::int32_t head) {
  const std::uint64_t mixed =
      splitmix64(std::uint64_t{static_cast<std::uint32_t>(item)} << 32 | static_cast<std::uint32_t>(head));
  return {mixed, splitmix64(mixed)};
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
  if (rules_.memory) failures_.resize(rules_.first_memory);
}

void LayoutSearch::restart(std::int64_t capacity, std::span<const std::int32_t> rank, LayoutChoice choice) {
  if (capacity != given_capacity_ && remembered_ > 0) {
    failures_.assign(rules_.first_memory, Failure());
    remembered_ = 0;
  }
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
  support_.assign(count, none);
  bound_.assign(count, 0);
  placed_.assign(count, 0);
  floor_.assign(sections, 0);
  const std::size_t padded = sections + chain_padding;
  latest_.assign(padded, capacity_);
  lowest_top_.assign(padded, 0);
  top_.assign(padded, 0);
  choices_.assign(padded, 0);
  crossing_.assign(sections + 1, 0);
  frames_.clear();
  partings_.clear();
  parts_.clear();
  old_heads_.clear();
  old_skips_.clear();
  old_floors_.clear();
  old_bounds_.clear();
  old_chains_.clear();
  order_.resize(count);
  for (std::size_t i = 0; i < count; ++i) order_[at(rank_[i])] = static_cast<Int>(i);
  std::map<std::tuple<Int, Int, Int, Int>, Int> last;  // of the items that are alike
  any_fixed_ = false;
  for (const Int i : order_) {
    Item& item = all_[at(i)];
    any_fixed_ = any_fixed_ || item.fixed != none;
    if (item.fixed != none) head_[at(i)] = bound_[at(i)] = item.fixed;
    for (Int s = item.lower; s < item.upper; ++s) latest_[at(s)] -= item.size;
    for (Int s = item.lower + 1; s < item.upper; ++s) ++crossing_[at(s)];
    item.twin = none;
    if (!rules_.twins || item.fixed != none) continue;
    const auto [like, first] = last.try_emplace({item.lower, item.upper, item.size, item.alignment}, i);
    if (!first) item.twin = std::exchange(like->second, i);
  }
  items_.clear();
  for (std::size_t r = 0; r < count; ++r) items_.push_back(search_key(bound_[at(order_[r])], static_cast<Int>(r)));
  std::sort(items_.begin(), items_.end());
  for (Int s = 0; s < sections_; ++s)
    if (latest_[at(s)] < 0) state_ = State::infeasible;
  Int from = 0;
  for (Int s = 1; s <= sections_; ++s) {
    if (s < sections_ && crossing_[at(s)] > 0) continue;
    parts_.emplace_back(from, s);
    from = s;
  }
  partings_.push_back({none, none, 0, static_cast<Int>(parts_.size()), 0, 0, sections_});
  if (state_ == State::running && !next_part(0)) state_ = State::found;
}

LayoutSearch::Int LayoutSearch::aligned(Int offset, const Item& item) const {
  if (item.alignment == 1) return offset;
  return (offset + item.alignment - 1) / item.alignment * item.alignment;
}

// A new frame with the unplaced items of its sections.
void LayoutSearch::push(Int lower, Int upper, Int parent, Int part) {
  const Int source = parent != none ? parent : partings_[at(part)].creator;
  const auto begin = static_cast<Int>(items_.size());
  list_items(lower, upper, source);
  Frame frame{};
  frame.lower = lower;
  frame.upper = upper;
  frame.begin = begin;
  frame.count = static_cast<Int>(items_.size()) - begin;
  frame.parent = parent;
  frame.part = part;
  frame.skips = static_cast<Int>(old_skips_.size());
  frame.bounds = static_cast<Int>(old_bounds_.size());
  frame.chains = static_cast<Int>(old_chains_.size());
  frame.placed = none;
  if (parent != none) {
    const Frame& above = frames_[at(parent)];
    frame.changed_from = above.touched_from;
    frame.changed_to = above.touched_to;
    frame.key = above.next_key;
    frame.check = above.next_check;
  } else {
    frame.changed_from = partings_[at(part)].touched_from;
    frame.changed_to = partings_[at(part)].touched_to;
    hash(frame);
  }
  frame.changed_from = std::max(frame.changed_from, lower);
  frame.changed_to = std::min(frame.changed_to, upper);
  frames_.push_back(frame);
}

// Appends the unplaced items of the source's list that live in the sections, by their bounds of now; those that rose
// since are few.
void LayoutSearch::list_items(Int lower, Int upper, Int source) {
  const Int from = source == none ? 0 : frames_[at(source)].begin;
  const Int count = source == none ? static_cast<Int>(all_.size()) : frames_[at(source)].count;
  const std::size_t begin = items_.size();
  moved_.clear();
  for (Int i = from; i < from + count; ++i) {
    const SearchKey key = items_[at(i)];
    const Int index = item_of(key);
    if (placed_[at(index)] != 0 || all_[at(index)].lower < lower || all_[at(index)].upper > upper) continue;
    if (bound_[at(index)] == bound_of(key))
      items_.push_back(key);
    else
      moved_.push_back(search_key(bound_[at(index)], rank_of(key)));
  }
  std::sort(moved_.begin(), moved_.end());
  std::size_t kept = items_.size(), to = kept + moved_.size();
  items_.resize(to);
  for (std::size_t rest = moved_.size(); rest > 0;)
    items_[--to] = kept == begin || moved_[rest - 1] > items_[kept - 1] ? moved_[--rest] : items_[--kept];
}

void LayoutSearch::undo_bounds(Int size) {
  for (; old_bounds_.size() > at(size); old_bounds_.pop_back())
    bound_[at(old_bounds_.back().first)] = old_bounds_.back().second;
}

void LayoutSearch::undo_chains(Int size) {
  for (; old_chains_.size() > at(size); old_chains_.pop_back()) {
    const OldChain& old = old_chains_.back();
    top_[at(old.section)] = old.top;
    choices_[at(old.section)] = old.choices;
  }
}

void LayoutSearch::pop() {
  const Frame& frame = frames_.back();
  for (; old_skips_.size() > at(frame.skips); old_skips_.pop_back())
    skipped_[at(old_skips_.back().first)] = old_skips_.back().second;
  undo_bounds(frame.bounds);
  undo_chains(frame.chains);
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
  frame.placed_bounds = static_cast<Int>(old_bounds_.size());
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
  frame.touched_from = item.lower;
  frame.touched_to = item.upper;
  const Fingerprint own = fingerprint(index, head_[at(index)]);
  frame.next_key = frame.key - own.key;
  frame.next_check = frame.check - own.check;
  for (Int n = neighbours_begin_[at(index)]; n < neighbours_begin_[at(index) + 1]; ++n) {
    const Int other = neighbours_[at(n)];
    if (placed_[at(other)] != 0) continue;
    frame.alone = false;
    if (head_[at(other)] >= top) continue;
    old_heads_.emplace_back(other, head_[at(other)]);
    const Int head = aligned(top, all_[at(other)]);
    const Fingerprint before = fingerprint(other, head_[at(other)]), after = fingerprint(other, head);
    frame.next_key += after.key - before.key;
    frame.next_check += after.check - before.check;
    head_[at(other)] = head;
    if (bound_[at(other)] >= head) continue;
    old_bounds_.emplace_back(other, bound_[at(other)]);
    bound_[at(other)] = head;
    frame.touched_from = std::min(frame.touched_from, all_[at(other)].lower);
    frame.touched_to = std::max(frame.touched_to, all_[at(other)].upper);
  }
}

void LayoutSearch::unplace(Frame& frame) {
  const Item& item = all_[at(frame.placed)];
  for (; old_heads_.size() > at(frame.heads); old_heads_.pop_back())
    head_[at(old_heads_.back().first)] = old_heads_.back().second;
  undo_bounds(frame.placed_bounds);
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
    partings_.push_back({index, frame.part, begin, count, 0, frame.touched_from, frame.touched_to});
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

void LayoutSearch::hash(Frame& frame) const {
  frame.key = frame.check = 0;
  for (Int i = frame.begin; i < frame.begin + frame.count; ++i) {
    const Int index = item_of(items_[at(i)]);
    const Fingerprint print = fingerprint(index, head_[at(index)]);
    frame.key += print.key;
    frame.check += print.check;
  }
}

bool LayoutSearch::known_failure(const Frame& frame) const {
  const Failure& failure = failures_[frame.key % failures_.size()];
  return failure.key == frame.key && failure.check == frame.check;
}

// The memory grows with the search: short ones are many and shouldn't pay for long ones.
void LayoutSearch::remember(const Frame& frame) {
  if (++remembered_ > failures_.size() && failures_.size() < most_failure_slots) {
    std::vector<Failure> larger(4 * failures_.size());
    for (const Failure& failure : failures_)
      if (failure.key != 0) larger[failure.key % larger.size()] = failure;
    failures_.swap(larger);
  }
  failures_[frame.key % failures_.size()] = {frame.key, frame.check};
}

// The chains of these sections are to be stacked anew.
void LayoutSearch::stack_anew(Int lower, Int upper) {
  for (std::size_t w = 0; w < windows_.size();) {
    if (windows_[w].second < lower || windows_[w].first > upper) {
      ++w;
      continue;
    }
    lower = std::min(lower, windows_[w].first);
    upper = std::max(upper, windows_[w].second);
    windows_[w] = windows_.back();
    windows_.pop_back();
  }
  windows_.emplace_back(lower, upper);
}

// The item at a position of the frame's list gets a higher bound and its new place in the list; false if it can't be
// there.
bool LayoutSearch::raise(Frame& frame, Int position, Int bound) {
  SearchKey* const list = &items_[at(frame.begin)];
  const Int rank = rank_of(list[position]), index = order_[at(rank)];
  const Item& item = all_[at(index)];
  if (item.fixed != none || bound > capacity_ - item.size) return false;
  const Int higher = aligned(bound, item);
  old_bounds_.emplace_back(index, bound_[at(index)]);
  bound_[at(index)] = higher;
  const SearchKey key = search_key(higher, rank);
  for (; position + 1 < frame.count && list[position + 1] < key; ++position) list[position] = list[position + 1];
  list[position] = key;
  return true;
}

// Whether something could lie on the item at or below that bound.
bool LayoutSearch::can_support(Int index, Int bound) const {
  return placed_[at(index)] == 0 && bound_[at(index)] + all_[at(index)].size <= bound;
}

// Raises skipped items onto the lowest top they can come to lie on.
bool LayoutSearch::raise_skipped(Frame& frame) {
  for (const auto& [index, before] : old_skips_) {
    const Item& item = all_[at(index)];
    if (placed_[at(index)] != 0 || skipped_[at(index)] != head_[at(index)]) continue;
    if (item.lower < frame.lower || item.upper > frame.upper) continue;
    Int& support = support_[at(index)];
    if (support != none && can_support(support, bound_[at(index)])) continue;
    Int lowest = beyond_any_capacity;
    for (Int n = neighbours_begin_[at(index)]; n < neighbours_begin_[at(index) + 1]; ++n) {
      const Int other = neighbours_[at(n)];
      if (placed_[at(other)] != 0 || bound_[at(other)] + all_[at(other)].size >= lowest) continue;
      lowest = bound_[at(other)] + all_[at(other)].size;
      support = other;
    }
    if (lowest <= bound_[at(index)]) continue;
    const SearchKey key = search_key(bound_[at(index)], rank_[at(index)]);
    const auto begin = items_.begin() + frame.begin;
    const auto found = std::lower_bound(begin, begin + frame.count, key);
    if (!raise(frame, static_cast<Int>(found - begin), lowest)) return false;
    stack_anew(item.lower, item.upper);
  }
  return true;
}

bool LayoutSearch::fixed_ones_fit(const Frame& frame) const {
  for (Int i = frame.begin; any_fixed_ && i < frame.begin + frame.count; ++i) {
    const Int index = item_of(items_[at(i)]);
    if (all_[at(index)].fixed != none && head_[at(index)] > all_[at(index)].fixed) return false;
  }
  return true;
}

// Stacks the items of each section that has changed by their bounds, and raises bounds on the way: an item too high to
// come next in some section lies at least on the lowest top of those that can.
bool LayoutSearch::chain(Frame& frame) {
  while (!windows_.empty()) {
    const auto [lower, upper] = windows_.back();
    windows_.pop_back();
    if (lower < upper && !chain_window(frame, lower, upper)) return false;
  }
  return true;
}

bool LayoutSearch::chain_window(Frame& frame, Int lower, Int upper) {
  for (Int s = lower; s < upper; ++s) {
    old_chains_.push_back({s, top_[at(s)], choices_[at(s)]});
    top_[at(s)] = floor_[at(s)];
    lowest_top_[at(s)] = rules_.next ? beyond_any_capacity : 0;
    choices_[at(s)] = 0;
  }
  ChainPass pass{&items_[at(frame.begin)], frame.count,     order_.data(), all_.data(), latest_.data(), top_.data(),
                 lowest_top_.data(),       choices_.data(), lower,         upper,       capacity_};
  while (true) {
    switch (stack_chains(pass)) {
      case ChainEnd::done:
        return true;
      case ChainEnd::overflow:
        blame(all_[at(item_of(pass.list[pass.position]))]);
        return false;
      case ChainEnd::raise:
        break;
    }
    const Item& item = all_[at(item_of(pass.list[pass.position]))];
    if (!raise(frame, pass.position, pass.raised)) return false;
    if (item.lower < lower) stack_anew(item.lower, lower);
    if (item.upper > upper) stack_anew(upper, item.upper);
  }
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
    if (open(item_of(items_[at(i)]))) return item_of(items_[at(i)]);
  return none;
}

LayoutSearch::Int LayoutSearch::tightest(const Frame& frame) const {
  const SearchKey* const list = &items_[at(frame.begin)];
  Int least_top = std::numeric_limits<Int>::max();
  for (Int i = 0; i < frame.count && bound_of(list[i]) < least_top; ++i)
    least_top = std::min(least_top, bound_of(list[i]) + all_[at(item_of(list[i]))].size);
  Int best = none;
  float least = std::numeric_limits<float>::infinity();
  for (Int i = 0; i < frame.count && bound_of(list[i]) < least_top; ++i) {
    const Int index = item_of(list[i]);
    if (!open(index)) continue;
    const Item& item = all_[at(index)];
    for (Int s = item.lower; s < item.upper; ++s) {
      const float slack = static_cast<float>(capacity_ - top_[at(s)] + 1) / blame_[at(s)];
      if (slack >= least) continue;
      least = slack;
      best = index;
    }
  }
  return best;
}

LayoutSearch::Int LayoutSearch::narrowest(const Frame& frame) const {
  const SearchKey* const list = &items_[at(frame.begin)];
  constexpr std::size_t sections_tried = 6;
  std::array<Int, sections_tried> tried{};
  for (std::size_t t = 0; t < sections_tried; ++t) {
    Int section = none, fewest = std::numeric_limits<Int>::max();
    for (Int s = frame.lower; s < frame.upper; ++s) {
      if (choices_[at(s)] <= 0 || choices_[at(s)] >= fewest) continue;
      if (std::find(tried.begin(), tried.begin() + t, s) != tried.begin() + t) continue;
      section = s;
      fewest = choices_[at(s)];
    }
    if (section == none) break;
    for (Int i = 0; i < frame.count && bound_of(list[i]) <= latest_[at(section)]; ++i) {
      const Int index = item_of(list[i]);
      const Item& item = all_[at(index)];
      if (item.lower <= section && section < item.upper && open(index) && nothing_slips_under(index)) return index;
    }
    tried[t] = section;
  }
  return lowest(frame);
}

// The item to try next, or none if the frame can't be completed.
LayoutSearch::Int LayoutSearch::choose(Frame& frame) {
  windows_.clear();
  if (frame.changed_from < frame.changed_to) windows_.emplace_back(frame.changed_from, frame.changed_to);
  frame.changed_to = frame.changed_from;
  if (!fixed_ones_fit(frame) || !raise_skipped(frame) || !chain(frame)) return none;
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
