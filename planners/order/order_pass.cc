#include "planners/order/order_pass.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "base/stop.h"

namespace spillway::planners {
namespace {

class Pass {
 public:
  Pass(const OrderLinks& links, const OrderPassOptions& options)
      : links_(links),
        options_(options),
        state_(links),
        bound_(options.bound),
        found_(links.operators()),
        watchers_(links.tensors()),
        callers_(links.operators()),
        dirty_(links.operators(), false),
        reached_(links.operators(), 0),
        watched_(links.operators(), 0),
        kept_(links.operators(), 0),
        looks_left_(options.looks < 0 ? most_looks_in_all(links.operators()) : options.looks) {
    for (OperatorIndex op = 0; op < links.operators(); ++op)
      if (state_.ready(op) && !links.is_root(op)) add(op);
  }

  OrderPassResult run() {
    while (!ready_.empty()) {
      explore();
      if (!excursions_.empty() && fits(excursions_.begin()->first)) {
        take(found_[excursions_.begin()->second].sequence);
      } else {
        take({choose()});
      }
      if (options_.give_up >= 0 && state_.peak() > options_.give_up) return {{}, 0, same_below_};
      bound_ = std::max(bound_, state_.peak());
    }
    return {state_.order(), state_.peak(), same_below_};
  }

 private:
  struct Found {
    std::vector<OperatorIndex> sequence;  // empty: none
    std::int64_t hill = 0;
  };

  // All that a pass asks of its bound.
  [[nodiscard]] bool fits(std::int64_t rise) {
    if (rise <= bound_ - state_.live()) return true;
    same_below_ = std::min(same_below_, state_.live() + rise);
    return false;
  }
  void add(OperatorIndex op) {
    ready_.insert({-options_.rank[op], op});
    mark(op);
  }
  void mark(OperatorIndex op) {
    if (dirty_[op]) return;
    dirty_[op] = true;
    to_explore_.push_back(op);
  }
  void forget(OperatorIndex op) {
    if (!found_[op].sequence.empty()) excursions_.erase({found_[op].hill, op});
    found_[op].sequence.clear();
  }
  // Within one exploration operators only run, so the first look at an operator watches all that a later one would.
  void watch(OperatorIndex op, OperatorIndex explorer) {
    if (watched_[op] == exploration_) return;
    watched_[op] = exploration_;
    add_once(explorer, callers_[op]);
    for (const TensorIndex t : links_.in(op))
      if (links_.size(t) > 0 || !state_.ran(links_.source(t))) add_once(explorer, watchers_[t]);
    for (const TensorIndex t : links_.out(op)) add_once(explorer, watchers_[t]);
  }
  // What nothing runs near is watched again and again by the same few: full lists lose what is in them twice, so that
  // they are as long as there are explorers. Their order tells nothing.
  void add_once(OperatorIndex explorer, std::vector<OperatorIndex>& watchers) {
    constexpr std::size_t short_enough = 32;
    if (!watchers.empty() && watchers.back() == explorer) return;
    if (watchers.size() >= short_enough && watchers.size() == watchers.capacity()) {
      ++tidying_;
      std::erase_if(watchers, [this](OperatorIndex one) { return std::exchange(kept_[one], tidying_) == tidying_; });
      watchers.reserve(std::max(2 * watchers.size(), 2 * short_enough));
    }
    watchers.push_back(explorer);
  }

  // Steps of training take 8 to 11 an operator. Where thousands of operators are ready at once (gathers of sharded
  // weights in many micro-batches) each one that runs has thousands of excursions looked at again: 250 an operator with
  // two micro-batches, and more with more. A pass that has used up its looks goes on without excursions.
  static std::int64_t most_looks_in_all(std::size_t operators) {
    return 200'000 + 64 * static_cast<std::int64_t>(operators);
  }

  // Looks again for excursions from ready operators near which something ran.
  void explore() {
    while (!to_explore_.empty()) {
      check_stop();
      const OperatorIndex op = to_explore_.back();
      to_explore_.pop_back();
      dirty_[op] = false;
      forget(op);
      if (!state_.ready(op) || looks_left_ == 0) continue;
      excursion_from(op);
      if (!found_[op].sequence.empty()) excursions_.insert({found_[op].hill, op});
    }
  }

  void excursion_from(OperatorIndex start) {
    const std::size_t length = state_.order().size();
    const std::int64_t base = state_.live(), peak = state_.peak();
    std::vector<OperatorIndex> local{start};
    Found& found = found_[start];
    found.hill = 0;
    ++exploration_;
    while (!local.empty() && found.sequence.size() < options_.excursion && looks_left_ > 0) {
      --looks_left_;
      const std::size_t best = best_of(local);
      const OperatorIndex op = local[best];
      local.erase(local.begin() + static_cast<std::ptrdiff_t>(best));
      found.hill = std::max(found.hill, state_.live() - base + state_.cost(op).rise);
      watch(op, start);
      state_.run(op);
      found.sequence.push_back(op);
      if (state_.live() <= base) {
        state_.back_to(length, peak);
        return;
      }
      grow(op, local, start);
    }
    found.sequence.clear();
    state_.back_to(length, peak);
  }

  // The operator that leaves least; of equals the one that needs least.
  std::size_t best_of(const std::vector<OperatorIndex>& local) const {
    std::size_t best = 0;
    std::tuple<std::int64_t, std::int64_t> best_key{std::numeric_limits<std::int64_t>::max(), 0};
    for (std::size_t i = 0; i < local.size(); ++i) {
      const OrderState::Cost cost = state_.cost(local[i]);
      const std::tuple<std::int64_t, std::int64_t> key{cost.net <= 0 ? 0 : cost.net, cost.rise};
      if (key < best_key) best = i, best_key = key;
    }
    return best;
  }

  // What became ready through an operator, and what else the readers of its tensors wait for if that is near.
  void grow(OperatorIndex op, std::vector<OperatorIndex>& local, OperatorIndex explorer) {
    constexpr std::size_t widest = 16;
    ++growth_;
    looked_at_ = 0;
    for (const TensorIndex t : links_.out(op)) {
      if (links_.sinks(t).size() > widest) continue;
      for (const OperatorIndex sink : links_.sinks(t)) reach(sink, local, explorer, 6);
    }
  }
  // Waits are many where micro-batches run beside each other: looking at all of them took 95 % of a pass and found
  // nothing more.
  static constexpr std::size_t most_looks = 16;
  void reach(OperatorIndex op, std::vector<OperatorIndex>& local, OperatorIndex explorer, int depth) {
    if (state_.ran(op) || local.size() >= 24) return;
    if (state_.ready(op)) {
      if (std::find(local.begin(), local.end(), op) == local.end()) local.push_back(op);
      return;
    }
    // One that gathers that much (an optimizer's step over all tensors) is never near.
    constexpr std::size_t most_inputs = 64;
    if (depth == 0 || reached_[op] == growth_ || links_.in(op).size() > most_inputs || looked_at_ == most_looks) return;
    reached_[op] = growth_;
    ++looked_at_;
    watch(op, explorer);
    for (const TensorIndex t : links_.in(op))
      if (!state_.ran(links_.source(t)) && !links_.is_root(links_.source(t)))
        reach(links_.source(t), local, explorer, depth - 1);
  }

  // The ready operator of highest rank that stays below the bound; if there is none, what exceeds it least.
  [[nodiscard]] OperatorIndex choose() {
    OperatorIndex lowest = ready_.begin()->second;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const auto& [rank, op] : ready_) {
      const std::int64_t rise = state_.cost(op).rise;
      if (fits(rise)) return op;
      if (rise < least) least = rise, lowest = op;
    }
    if (!excursions_.empty() && excursions_.begin()->first <= least) return excursions_.begin()->second;
    return lowest;
  }

  void take(const std::vector<OperatorIndex>& given) {
    const std::vector<OperatorIndex> sequence = given;  // what is given changes with what runs
    for (const OperatorIndex op : sequence) {
      const std::size_t first = state_.order().size();
      state_.run(op);
      for (std::size_t i = first; i < state_.order().size(); ++i) ran(state_.order()[i]);
    }
  }
  void ran(OperatorIndex op) {
    ready_.erase({-options_.rank[op], op});
    forget(op);
    wake(callers_[op]);
    for (const TensorIndex t : links_.in(op))
      if (links_.size(t) > 0 && state_.unread(t) <= options_.excursion) wake(watchers_[t]);
    for (const TensorIndex t : links_.out(op)) wake(watchers_[t]);
    if (links_.is_root(op)) return;
    for (const TensorIndex t : links_.out(op))
      for (const OperatorIndex sink : links_.sinks(t))
        if (state_.ready(sink)) add(sink);
  }
  void wake(std::vector<OperatorIndex>& watchers) {
    for (const OperatorIndex explorer : watchers) mark(explorer);
    watchers.clear();
  }

  const OrderLinks& links_;
  const OrderPassOptions& options_;
  OrderState state_;
  std::int64_t bound_, same_below_ = std::numeric_limits<std::int64_t>::max();
  std::set<std::pair<std::int64_t, OperatorIndex>> ready_;       // by rank, highest first
  std::set<std::pair<std::int64_t, OperatorIndex>> excursions_;  // by the height of their hill
  std::vector<Found> found_;
  // Of each tensor: from where an excursion came near. Those are looked at again when its source runs, or a sink and so
  // few are left that an excursion could end its life. Of each operator: whose excursions hold it or wait for it.
  std::vector<std::vector<OperatorIndex>> watchers_, callers_;
  std::vector<OperatorIndex> to_explore_;
  std::vector<bool> dirty_;
  std::vector<std::uint64_t> reached_;  // by each operator: the last growth_ that looked at what it waits for
  std::uint64_t growth_ = 0;
  std::vector<std::uint64_t> watched_;  // by each operator: the last exploration_ that watched it
  std::uint64_t exploration_ = 0;
  std::vector<std::uint64_t> kept_;  // by each operator: the last tidying_ that found it in a list
  std::uint64_t tidying_ = 0;
  std::size_t looked_at_ = 0;  // in this growth, operators that aren't ready
  std::int64_t looks_left_;    // operators of excursions, of this pass
};

}  // namespace

OrderPassResult order_pass(const OrderLinks& links, const OrderPassOptions& options) {
  return Pass(links, options).run();
}

}  // namespace spillway::planners
