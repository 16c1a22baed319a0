#include "planners/recompute/exact.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

constexpr std::uint32_t drop = ~std::uint32_t{0};

class Search {
 public:
  Search(const RematProblem& problem, Bytes limit, std::size_t most_states)
      : problem_(problem), limit_(limit.count()), most_states_(most_states), bits_(problem.values.size()) {
    for (std::uint32_t n = 0; n < problem.nodes.size(); ++n) {
      (problem.nodes[n].is_backward ? backward_ : forward_).push_back(n);
      reads_.push_back(mask_of(problem.nodes[n].reads));
      writes_.push_back(mask_of(problem.nodes[n].writes));
    }
  }

  RematSolution run() {
    visit(0, 0, {0, drop});
    while (!queue_.empty()) {
      const auto [cost, state] = queue_.top();
      queue_.pop();
      if (cost != seen_.at(state).cost) continue;
      if ((state >> bits_) == backward_.size()) return solution(state);
      if (seen_.size() > most_states_) return {false, false, {}, {}};
      expand(state, cost);
    }
    return {};
  }

 private:
  struct Step {
    std::uint64_t from = 0;
    std::uint32_t node = drop;
  };
  struct Seen {
    std::int64_t cost = 0;
    Step step;
  };

  static std::uint64_t mask_of(const std::vector<std::uint32_t>& values) {
    std::uint64_t mask = 0;
    for (const std::uint32_t value : values) mask |= std::uint64_t{1} << value;
    return mask;
  }
  [[nodiscard]] std::int64_t bytes_of(std::uint64_t mask) const {
    std::int64_t bytes = 0;
    for (std::size_t v = 0; v < bits_; ++v)
      if ((mask >> v & 1) != 0) bytes += problem_.values[v].count();
    return bytes;
  }

  void visit(std::uint64_t state, std::int64_t cost, Step step) {
    const auto [at, is_new] = seen_.try_emplace(state, Seen{cost, step});
    if (!is_new) {
      if (at->second.cost <= cost) return;
      at->second = {cost, step};
    }
    queue_.emplace(cost, state);
  }

  void expand(std::uint64_t state, std::int64_t cost) {
    const std::uint64_t there = state & ((std::uint64_t{1} << bits_) - 1), done = state >> bits_;
    for (std::size_t v = 0; v < bits_; ++v)
      if ((there >> v & 1) != 0) visit(state & ~(std::uint64_t{1} << v), cost, {state, drop});
    for (const std::uint32_t node : forward_)
      if ((writes_[node] & ~there) != 0) try_node(state, cost, there, done, node);
    try_node(state, cost, there, done + 1, backward_[done]);
  }

  void try_node(std::uint64_t state, std::int64_t cost, std::uint64_t there, std::uint64_t done, std::uint32_t node) {
    if ((reads_[node] & ~there) != 0) return;
    const std::uint64_t after = there | writes_[node];
    if (bytes_of(after) + problem_.nodes[node].temporary.count() > limit_) return;
    visit(done << bits_ | after, cost + problem_.nodes[node].time.count(), {state, node});
  }

  RematSolution solution(std::uint64_t state) {
    RematSolution result;
    result.is_possible = true;
    result.time = Picos(seen_.at(state).cost);
    while (state != 0) {
      const Step step = seen_.at(state).step;
      if (step.node != drop) result.runs.push_back(step.node);
      state = step.from;
    }
    std::reverse(result.runs.begin(), result.runs.end());
    return result;
  }

  const RematProblem& problem_;
  std::int64_t limit_;
  std::size_t most_states_, bits_;
  std::vector<std::uint32_t> forward_, backward_;
  std::vector<std::uint64_t> reads_, writes_;
  std::unordered_map<std::uint64_t, Seen> seen_;
  std::priority_queue<std::pair<std::int64_t, std::uint64_t>, std::vector<std::pair<std::int64_t, std::uint64_t>>,
                      std::greater<>>
      queue_;
};

bool is_activation(TensorRole role) { return role == TensorRole::activation || role == TensorRole::temporary; }

}  // namespace

RematSolution solve_exact(const RematProblem& problem, Bytes limit, std::size_t most_states) {
  SPILLWAY_ASSERT(problem.values.size() <= most_exact_values);
  return Search(problem, limit, most_states).run();
}

RematProblem remat_problem(const RecomputeIndex& index) {
  const Trace& trace = index.trace();
  RematProblem problem;
  std::map<std::uint32_t, std::uint32_t> values;  // by storage
  const std::string file = trace.provenance.empty() ? "" : trace.provenance.front().file;
  std::map<OpId, RematNode> nodes;
  for (const Use& use : trace.uses) {
    const std::size_t op = index_of(use.op), tensor = index_of(use.tensor);
    if (!is_device_work(trace.ops.kind[op]) || !is_activation(trace.tensors.role[tensor])) continue;
    const Phase phase = trace.ops.phase[op];
    const std::uint32_t storage = trace.tensors.storage[tensor];
    if (phase == Phase::forward && use.access == Access::write) {
      const auto [at, is_new] = values.emplace(storage, static_cast<std::uint32_t>(problem.values.size()));
      if (!is_new)
        throw InputError(file, std::string(trace.strings.text(trace.tensors.name[tensor])),
                         "is written twice in the forward", "use the method chain or greedy");
      problem.values.push_back(trace.tensors.bytes[tensor]);
      problem.saved.push_back(RematProblem::no_saved);
      nodes[use.op].writes.push_back(at->second);
    } else if (const auto found = values.find(storage); found != values.end() && use.access == Access::read) {
      RematNode& node = nodes[use.op];
      node.reads.push_back(found->second);
      node.is_backward = phase != Phase::forward;
    }
  }
  if (values.size() > most_exact_values)
    throw InputError(file, "activations", std::to_string(values.size()) + " of them are too many for the exact method",
                     "use the method chain or greedy; exact takes " + std::to_string(most_exact_values));
  for (std::size_t t = 0; t < index.saved().size(); ++t)
    if (const auto found = values.find(index.saved()[t].storage); found != values.end()) {
      problem.values[found->second] = index.saved()[t].bytes;
      problem.saved[found->second] = t;
    }
  for (auto& [op, node] : nodes) {
    node.op = op;
    if (trace.ops.duration[index_of(op)] != unknown_time) node.time = trace.ops.duration[index_of(op)];
    problem.nodes.push_back(std::move(node));
  }
  return problem;
}

AwayUntil away_in(const RematProblem& problem, const RematSolution& solution, const RecomputeIndex& index) {
  AwayUntil away(index.saved().size(), OpId::none);
  std::vector<std::uint32_t> made(problem.values.size(), 0);  // backward nodes done when it was last made
  std::vector<OpId> backward;
  for (const RematNode& node : problem.nodes)
    if (node.is_backward) backward.push_back(node.op);
  std::uint32_t done = 0;
  std::vector<bool> is_used(problem.values.size(), false);
  for (const std::uint32_t run : solution.runs) {
    const RematNode& node = problem.nodes[run];
    if (!node.is_backward) {
      for (const std::uint32_t value : node.writes) made[value] = done;
      continue;
    }
    for (const std::uint32_t value : node.reads) {
      if (is_used[value]) continue;
      is_used[value] = true;
      if (problem.saved[value] != RematProblem::no_saved && made[value] > 0)
        away[problem.saved[value]] = backward[made[value]];
    }
    ++done;
  }
  return away;
}

}  // namespace spillway::planners
