#include "planners/order/roam_updates.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace spillway::planners {
namespace {

// What an update holds beside its gradient: two moments, or their scratch.
constexpr std::int64_t adam_factor = 3;

class Updates {
 public:
  Updates(const OrderGraph& graph, const RoamBranches& branches, const RoamUpdateOptions& options, RoamDag& dag)
      : graph_(graph), branches_(branches), options_(options), dag_(dag) {}

  std::size_t run() {
    std::size_t delayed = 0;
    if (!branches_.branches.empty()) {
      const std::vector<Delay> delays = delay();
      delayed = delays.size();
      run_promptly(delays);
      pin_side_branches();
    }
    start_late();
    return delayed;
  }

 private:
  struct Delay {
    std::size_t branch = 0;
    OperatorIndex target = 0;  // what waits for the anchor: the gradient, or what comes before it alone
  };

  // Bytes of activations at each level of the graph: made before the loss, read after it.
  [[nodiscard]] std::vector<std::int64_t> activation_load(const std::vector<std::int64_t>& level) const {
    const std::int64_t middle = level[branches_.loss];
    std::vector<std::int64_t> load(static_cast<std::size_t>(*std::max_element(level.begin(), level.end())) + 2, 0);
    for (const OrderTensor& tensor : graph_.tensors) {
      if (branches_.update[tensor.source]) continue;
      std::int64_t last = level[tensor.source];
      for (const OperatorIndex sink : tensor.sinks) last = std::max(last, level[sink]);
      if (level[tensor.source] >= middle || last <= middle) continue;
      load[static_cast<std::size_t>(level[tensor.source])] += tensor.size;
      load[static_cast<std::size_t>(last) + 1] -= tensor.size;
    }
    for (std::size_t i = 1; i < load.size(); ++i) load[i] += load[i - 1];
    return load;
  }

  // Branches by the level of a marker, as ROAM walks them.
  template <class Key>
  [[nodiscard]] std::vector<std::size_t> sorted_branches(const Key& key) const {
    std::vector<std::size_t> order(branches_.branches.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  }

  std::vector<Delay> delay() {
    const std::vector<std::int64_t> level = dag_.forward_levels();
    const std::vector<std::int64_t> load = activation_load(level);
    std::vector<std::int64_t> read(graph_.operators.size(), 0);
    for (const OrderTensor& tensor : graph_.tensors)
      for (const OperatorIndex sink : tensor.sinks) read[sink] += tensor.size;
    const auto& all = branches_.branches;
    const auto gradient_level = [&](std::size_t i) { return level[all[i].gradient]; };
    const std::vector<std::size_t> order = sorted_branches(gradient_level);
    const OperatorIndex anchor = all[order.back()].end;
    const std::vector<bool> before_anchor = dag_.ancestors(anchor);
    const auto with_update = [&](std::size_t i) {
      return load[static_cast<std::size_t>(gradient_level(i))] + adam_factor * all[i].bytes;
    };
    std::int64_t peak = load[static_cast<std::size_t>(level[branches_.loss])];
    std::vector<std::size_t> marked;
    for (const std::size_t i : order) {
      const auto inputs = static_cast<double>(read[all[i].gradient]);
      if (static_cast<double>(all[i].bytes) < options_.delay_ratio * inputs || with_update(i) < peak) continue;
      peak = std::max(peak, adam_factor * all[i].bytes);
      marked.push_back(i);
    }
    std::vector<Delay> delays;
    for (const std::size_t i : marked) {
      if (before_anchor[all[i].gradient] || with_update(i) < peak) continue;
      const OperatorIndex target = first_apart(all[i].gradient, before_anchor);
      if (dag_.add(anchor, target)) delays.push_back({i, target});
    }
    return delays;
  }

  // The last found, going back from an operator breadth first, of those that the anchor does not wait for.
  [[nodiscard]] OperatorIndex first_apart(OperatorIndex from, const std::vector<bool>& before_anchor) const {
    std::vector<bool> seen(dag_.operators(), false);
    std::vector<OperatorIndex> open{from};
    seen[from] = true;
    for (std::size_t i = 0; i < open.size(); ++i) {
      for (const OperatorIndex before : dag_.previous(open[i])) {
        if (before_anchor[before] || seen[before]) continue;
        seen[before] = true;
        open.push_back(before);
      }
    }
    return open.back();
  }

  void run_promptly(const std::vector<Delay>& delays) {
    const std::vector<std::int64_t> forward = dag_.forward_levels(), backward = dag_.backward_levels();
    const auto& all = branches_.branches;
    const std::vector<std::size_t> order =
        sorted_branches([&](std::size_t i) { return std::tuple(forward[all[i].end], all[i].bytes); });
    std::vector<std::optional<OperatorIndex>> target(all.size());
    for (const Delay& delayed : delays) target[delayed.branch] = delayed.target;
    // The last runs at the end anyway.
    for (std::size_t k = 0; k + 1 < order.size(); ++k) {
      const std::size_t i = order[k];
      if (target[i] && delays.size() > 1) {
        const std::size_t next = order[k + 1];
        dag_.add(all[i].end, target[next].value_or(all[next].gradient));
      } else if (const auto next = next_on_way(all[i].end, forward[all[i].gradient], forward, backward)) {
        dag_.add(all[i].end, *next);
      }
    }
  }

  // Copies and the like that the loss neither waits for nor leads to: those of the forward pass run at once, those that
  // are deeper than the loss after it.
  void pin_side_branches() {
    const std::vector<std::int64_t> forward = dag_.forward_levels(), backward = dag_.backward_levels();
    const std::vector<bool> before = dag_.ancestors(branches_.loss), after = dag_.descendants(branches_.loss);
    for (OperatorIndex op = 0; op < dag_.operators(); ++op) {
      if (before[op] || after[op] || branches_.update[op] || dag_.previous(op).empty()) continue;
      if (forward[op] >= forward[branches_.loss]) {
        dag_.add(branches_.loss, op);
      } else if (const auto next = next_on_way(op, forward[op] + 1, forward, backward)) {
        dag_.add(op, *next);
      }
    }
  }

  // Of what follows the nearest sources of an operator and is at least `level` deep, the one with the longest way to an
  // end that does not lead to the operator.
  [[nodiscard]] std::optional<OperatorIndex> next_on_way(OperatorIndex from, std::int64_t level,
                                                         const std::vector<std::int64_t>& forward,
                                                         const std::vector<std::int64_t>& backward) const {
    const std::vector<bool> before = dag_.ancestors(from);
    std::vector<bool> seen(dag_.operators(), false);
    Layers sources(from, dag_.operators(), [this](OperatorIndex op) -> decltype(auto) { return dag_.previous(op); });
    std::optional<OperatorIndex> best;
    for (std::vector<OperatorIndex> open = sources.next(); !best && !open.empty(); open = sources.next()) {
      std::int64_t longest = 0;
      while (!open.empty()) {
        const OperatorIndex op = open.back();
        open.pop_back();
        if (seen[op]) continue;
        seen[op] = true;
        for (const OperatorIndex follower : dag_.next(op)) {
          if (backward[follower] <= longest) continue;
          if (!before[follower] && forward[follower] >= level) {
            longest = backward[follower];
            best = follower;
          } else if (!seen[follower]) {
            open.push_back(follower);
          }
        }
      }
    }
    return best;
  }

  // An operator that waits for nothing gets a predecessor.
  void start_late() {
    const std::vector<std::int64_t> forward = dag_.forward_levels(), backward = dag_.backward_levels();
    std::vector<OperatorIndex> starts;
    for (OperatorIndex op = 0; op < dag_.operators(); ++op)
      if (dag_.previous(op).empty()) starts.push_back(op);
    for (const OperatorIndex start : starts)
      if (const auto before = deepest_beside(start, forward, backward)) dag_.add(*before, start);
  }

  // Of what the nearest readers of an operator wait for as well, the deepest with a longer way to an end than it has.
  [[nodiscard]] std::optional<OperatorIndex> deepest_beside(OperatorIndex start,
                                                            const std::vector<std::int64_t>& forward,
                                                            const std::vector<std::int64_t>& backward) const {
    std::optional<OperatorIndex> best;
    Layers readers(start, dag_.operators(), [this](OperatorIndex op) -> decltype(auto) { return dag_.next(op); });
    std::vector<bool> seen(dag_.operators(), false);
    for (std::vector<OperatorIndex> open = readers.next(); !best && !open.empty(); open = readers.next()) {
      while (!open.empty()) {
        const OperatorIndex op = open.back();
        open.pop_back();
        if (seen[op]) continue;
        seen[op] = true;
        for (const OperatorIndex before : dag_.previous(op)) {
          if (backward[before] <= backward[start]) {
            open.push_back(before);
          } else if (!best || forward[before] > forward[*best]) {
            best = before;
          }
        }
      }
    }
    return best;
  }

  // Layers of operators around some: each the neighbours of the layer before that were in none. Whose neighbours a walk
  // has been through, it need not meet again.
  template <class Neighbours>
  class Layers {
   public:
    Layers(OperatorIndex from, std::size_t operators, Neighbours neighbours)
        : layer_{from}, was_in_(operators, false), neighbours_(std::move(neighbours)) {
      was_in_[from] = true;
    }
    // In order; empty: there are no more.
    [[nodiscard]] const std::vector<OperatorIndex>& next() {
      std::vector<OperatorIndex> around;
      for (const OperatorIndex op : layer_)
        for (const OperatorIndex each : neighbours_(op)) {
          if (was_in_[each]) continue;
          was_in_[each] = true;
          around.push_back(each);
        }
      std::sort(around.begin(), around.end());
      layer_ = std::move(around);
      return layer_;
    }

   private:
    std::vector<OperatorIndex> layer_;
    std::vector<bool> was_in_;
    Neighbours neighbours_;
  };

  const OrderGraph& graph_;
  const RoamBranches& branches_;
  const RoamUpdateOptions& options_;
  RoamDag& dag_;
};

}  // namespace

std::size_t schedule_updates(const OrderGraph& graph, const RoamBranches& branches, const RoamUpdateOptions& options,
                             RoamDag& dag) {
  return Updates(graph, branches, options, dag).run();
}

}  // namespace spillway::planners
