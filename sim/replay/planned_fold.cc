#include "sim/replay/planned_fold.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace spillway::sim {
namespace {

constexpr std::uint32_t least_periods = 3;
constexpr int rank_shift = 48;  // addresses of different ranks' blocks are apart

// The longest run of true in is_alike(0) ... is_alike(count - 1): its first and the one behind its last.
template <class IsAlike>
std::pair<std::uint32_t, std::uint32_t> longest_run(std::uint32_t count, const IsAlike& is_alike) {
  std::pair<std::uint32_t, std::uint32_t> best{0, 0};
  std::uint32_t from = 0;
  for (std::uint32_t k = 0; k < count; ++k) {
    if (!is_alike(k))
      from = k + 1;
    else if (k + 1 - from > best.second - best.first)
      best = {from, k + 1};
  }
  return best;
}

// What a rank's allocator is asked.
class RankEvents {
 public:
  RankEvents(PlannedTrace& planned, const PeriodicRun& whole, const StepFold::Rank& shown, std::size_t rank,
             std::span<const Picos> times)
      : planned_(planned), whole_(whole), shown_(shown), rank_(rank), times_(times), periods_(shown.periods) {
    refused_ = collect();
    if (refused_ == nullptr) refused_ = find_alike();
    if (refused_ == nullptr) refused_ = find_time();
  }

  // Null: nothing is in the way.
  [[nodiscard]] const char* refused() const { return refused_; }

  // The end of the piece.
  [[nodiscard]] Picos until() const { return until_; }

  // Gives all blocks new addresses, and tells the lowest of those that move.
  std::uint64_t rename_blocks() {
    std::size_t most = 0;
    for (const std::vector<Asked>& period : periods_) most = std::max(most, period.size());
    stride_ = most;
    const std::uint64_t base = std::uint64_t{rank_ + 1} << rank_shift, moving = base + before_.size() + periods_size();
    std::uint64_t next_before = base, next_after = moving + periods_.size() * stride_;
    for (const Asked& asked : before_)
      if (is_allocation(asked)) name(asked, next_before++);
    for (std::uint32_t k = 0; k < periods_.size(); ++k)
      for (std::size_t i = 0; i < periods_[k].size(); ++i)
        if (const Asked& asked = periods_[k][i]; is_allocation(asked))
          name(asked, asked.moves || k >= first_ ? moving + k * stride_ + i : next_before++);
    for (const Asked& asked : after_)
      if (is_allocation(asked)) name(asked, next_after++);
    for (const auto* list : {&before_, &after_}) rename(*list);
    for (const std::vector<Asked>& period : periods_) rename(period);
    return moving;
  }
  [[nodiscard]] std::uint64_t stride() const { return stride_; }

 private:
  struct Asked {
    std::uint32_t event = 0;
    // Of what gives back: where the block was taken, period and place in it.
    std::uint32_t period = PeriodicRun::none;
    std::size_t place = 0;
    bool moves = false;  // of what takes: given back in a period
  };

  [[nodiscard]] const MemoryEvent& event(const Asked& asked) const { return planned_.trace.memory_events[asked.event]; }
  [[nodiscard]] bool is_allocation(const Asked& asked) const { return event(asked).action == MemoryAction::allocate; }
  [[nodiscard]] std::size_t periods_size() const {
    std::size_t all = 0;
    for (const std::vector<Asked>& period : periods_) all += period.size();
    return all;
  }

  [[nodiscard]] const char* collect() {
    struct Taken {
      std::uint32_t period = PeriodicRun::none;
      std::size_t place = 0;
    };
    std::unordered_map<std::uint64_t, Taken> taken;  // by address
    for (std::uint32_t e = 0; e < planned_.trace.memory_events.size(); ++e) {
      const MemoryEvent& one = planned_.trace.memory_events[e];
      if (static_cast<std::size_t>(one.device) != rank_) continue;
      if (one.action != MemoryAction::allocate && one.action != MemoryAction::free_requested)
        return "blocks are given back late";
      if (one.anchor != OpId::none && whole_.rank_of(one.anchor) != rank_)
        return "a rank takes memory of another one's device";
      const std::uint32_t period = one.anchor == OpId::none ? PeriodicRun::none : whole_.period_of(one.anchor);
      const bool is_behind =
          one.anchor != OpId::none && period == PeriodicRun::none && index_of(one.anchor) >= shown_.end();
      std::vector<Asked>& list = period != PeriodicRun::none ? periods_[period] : is_behind ? after_ : before_;
      Asked asked{.event = e};
      if (one.action == MemoryAction::allocate) {
        if (!taken.try_emplace(one.address.count(), Taken{period, list.size()}).second) return "addresses come again";
      } else if (const auto found = taken.find(one.address.count()); found != taken.end()) {
        asked.period = found->second.period;
        asked.place = found->second.place;
        if (asked.period != PeriodicRun::none) periods_[asked.period][asked.place].moves = period != PeriodicRun::none;
      }
      list.push_back(asked);
    }
    return nullptr;
  }

  // The periods whose events come again a turn later, at their time.
  [[nodiscard]] const char* find_alike() {
    const auto [first, last] = whole_.window(rank_);
    const std::uint32_t turns = whole_.turns(), from = first;
    const auto [begin, end] =
        longest_run(last + 1 - turns - from, [&](std::uint32_t k) { return are_alike(from + k, from + k + turns); });
    if (end == begin) return "memory is asked for differently in each period";
    first_ = from + begin;
    last_ = from + end - 1 + turns;
    return nullptr;
  }
  [[nodiscard]] bool are_alike(std::uint32_t k, std::uint32_t later) const {
    const std::vector<Asked>&one = periods_[k], &other = periods_[later];
    const std::uint32_t turns = later - k, ops = turns * shown_.ops;
    const auto moved_alike = [&](OpId a, OpId b) {
      if (a == OpId::none || b == OpId::none) return a == b;
      return index_of(b) == index_of(a) + ops && whole_.in_window(a) && whole_.in_window(b);
    };
    if (one.size() != other.size()) return false;
    for (std::size_t i = 0; i < one.size(); ++i) {
      const MemoryEvent &a = event(one[i]), &b = event(other[i]);
      if (a.action != b.action || a.bytes != b.bytes || a.stream != b.stream || !moved_alike(a.anchor, b.anchor) ||
          !moved_alike(planned_.gate[one[i].event], planned_.gate[other[i].event]) ||
          times_[other[i].event] - times_[one[i].event] != whole_.period())
        return false;
      if (a.action == MemoryAction::allocate) continue;
      if (one[i].period == PeriodicRun::none || other[i].period != one[i].period + turns ||
          other[i].place != one[i].place)
        return false;
    }
    return true;
  }

  // As PeriodicRun::narrow() does for work.
  [[nodiscard]] const char* find_time() {
    const Picos period = whole_.period();
    const std::uint32_t turns = whole_.turns();
    Picos earliest{}, behind = Picos::max();  // the end of the piece may be: not before, and before
    const auto is_over = [&](const Asked& asked) { earliest = std::max(earliest, times_[asked.event] + period); };
    const auto begins = [&](const Asked& asked) { behind = std::min(behind, times_[asked.event]); };
    for (const Asked& asked : before_) is_over(asked);
    for (const Asked& asked : after_) begins(asked);
    for (std::uint32_t k = 0; k < periods_.size(); ++k)
      for (const Asked& asked : periods_[k]) {
        const Picos time = times_[asked.event];
        if (k < first_)
          is_over(asked);
        else if (k < first_ + turns)
          earliest = std::max(earliest, time);
        if (k > last_)
          begins(asked);
        else if (k + turns > last_)
          behind = std::min(behind, time + period);
      }
    if (!gives_back_in_time()) return "blocks of many periods are given back at the end";
    if (behind == Picos::max() || earliest >= behind) return "memory of other periods is asked for in all";
    until_ = behind - Picos(1);
    return nullptr;
  }
  // What is given back behind the periods was taken before them, or by the last: those before gave theirs back.
  [[nodiscard]] bool gives_back_in_time() const {
    for (const Asked& asked : after_) {
      if (is_allocation(asked) || asked.period == PeriodicRun::none || asked.period < first_) continue;
      const std::uint32_t like = first_ + (asked.period - first_) % whole_.turns();
      if (like != asked.period && !periods_[like][asked.place].moves) return false;
    }
    return true;
  }

  void name(const Asked& asked, std::uint64_t address) { names_.emplace(event(asked).address.count(), address); }
  void rename(const std::vector<Asked>& list) const {
    for (const Asked& asked : list) {
      MemoryEvent& one = planned_.trace.memory_events[asked.event];
      if (const auto found = names_.find(one.address.count()); found != names_.end()) one.address = Addr(found->second);
    }
  }

  PlannedTrace& planned_;
  const PeriodicRun& whole_;
  const StepFold::Rank& shown_;
  std::size_t rank_;
  std::span<const Picos> times_;
  std::vector<Asked> before_, after_;
  std::vector<std::vector<Asked>> periods_;
  std::uint32_t first_ = 0, last_ = 0;  // periods that are alike, both within
  Picos until_{};
  std::uint64_t stride_ = 0;
  const char* refused_ = nullptr;
  std::unordered_map<std::uint64_t, std::uint64_t> names_;  // new by old address
};

}  // namespace

std::optional<StepFold> planned_fold(const PlannedTrace& planned, const StepFold& step) {
  std::vector<std::uint32_t>
      behind;  // by op of the step: where what follows it begins in the planned trace; 0: nowhere
  for (std::uint32_t i = 0; i < planned.source.size(); ++i) {
    if (planned.source[i] == OpId::none) continue;
    const std::size_t source = index_of(planned.source[i]);
    if (source >= behind.size()) behind.resize(source + 1, 0);
    if (behind[source] == 0) behind[source] = i + 1;  // what repeats it comes later
  }
  StepFold fold{.times = step.times, .ranks = {}};
  for (const StepFold::Rank& rank : step.ranks) {
    const auto begin = [&](std::uint32_t k) { return behind.at(rank.op + k * rank.ops - 1); };
    const auto ops = [&](std::uint32_t k) { return begin(k + 1) - begin(k); };
    const auto is_alike = [&](std::uint32_t k) { return ops(k) == ops(k + 1); };
    const auto [first, end] = longest_run(rank.periods - 1, is_alike);
    if (end + 1 - first < least_periods) return std::nullopt;
    const auto [later, later_end] =
        longest_run(rank.periods - 1 - end, [&, from = end](std::uint32_t k) { return is_alike(from + k); });
    if (later_end + 1 - later >= least_periods) return std::nullopt;  // those that more micro-batches are like
    fold.ranks.push_back({.periods = end + 1 - first, .op = begin(first), .ops = ops(first)});
  }
  return fold;
}

FoldedOrder fold_events(PlannedTrace& planned, const PeriodicRun& whole, const StepFold& fold,
                        std::span<const Picos> times) {
  FoldedOrder order{.fold = fold, .event_time = {}};
  for (const MemoryEvent& event : planned.trace.memory_events)
    if (event.device < 0 && event.anchor != OpId::none && whole.period_of(event.anchor) != PeriodicRun::none)
      order.refused = "the host's memory is asked for in every period";
  order.fold.times = whole.times();
  std::vector<Picos> until;
  for (std::size_t r = 0; r < fold.ranks.size() && order.refused == nullptr; ++r) {
    RankEvents events(planned, whole, fold.ranks[r], r, times);
    order.refused = events.refused();
    if (order.refused != nullptr) break;
    order.fold.ranks[r].address = events.rename_blocks();
    order.fold.ranks[r].bytes = events.stride() * whole.turns();
    until.push_back(events.until());
  }
  if (order.refused != nullptr) return order;
  order.event_time = sort_events(planned, {times.begin(), times.end()});
  const auto place = [&](Picos time) {
    return static_cast<std::uint32_t>(std::upper_bound(order.event_time.begin(), order.event_time.end(), time) -
                                      order.event_time.begin());
  };
  for (std::size_t r = 0; r < until.size(); ++r) {
    StepFold::Rank& rank = order.fold.ranks[r];
    rank.event = place(until[r] - whole.period());
    rank.events = place(until[r]) - rank.event;
    rank.periods = 1;
  }
  for (std::size_t e = 0; e < order.event_time.size(); ++e) {
    const std::int16_t device = planned.trace.memory_events[e].device;
    if (device >= 0 && order.event_time[e] > until.at(static_cast<std::size_t>(device)))
      order.event_time[e] += whole.longer();
  }
  return order;
}

}  // namespace spillway::sim
