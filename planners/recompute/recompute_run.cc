#include "planners/recompute/recompute_run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "planners/recompute/exact.h"
#include "planners/recompute/layer_chain.h"
#include "planners/recompute/layer_frontier.h"
#include "planners/recompute/tensor_search.h"

namespace spillway::planners {
namespace {

constexpr std::size_t chain_levels = 64;
constexpr std::size_t most_single = 64;  // saved tensors up to which each is a choice of its own
constexpr std::size_t most_states = 200'000,
                      all_states = 4'000'000;  // of the exact method, as one of several and alone
constexpr std::int64_t exact_rounds = 8;       // of limits for the exact method

// A step of the greedy method: of one rank and layer, all micro-batches together.
struct GreedyStep {
  std::uint16_t rank = 0, layer = 0;
  std::size_t number = 0;            // on its layer's frontier
  std::vector<std::size_t> tensors;  // saved
  Bytes bytes{};
  Picos time{};
  [[nodiscard]] double price() const {
    return static_cast<double>(time.count()) / static_cast<double>(std::max<std::int64_t>(1, bytes.count()));
  }
};

// By rank, in the order in which they are taken.
std::vector<std::vector<GreedyStep>> greedy_steps(RecomputeIndex& index, const std::vector<LayerPass>& passes,
                                                  Bytes least) {
  FrontierCache frontiers(index, least);
  std::map<std::tuple<std::uint16_t, std::uint16_t, std::size_t>, GreedyStep> steps;
  for (const LayerPass& pass : passes) {
    const std::vector<FrontierStep>& frontier = frontiers.of(pass);
    for (std::size_t n = 0; n < frontier.size(); ++n) {
      GreedyStep& step = steps[{pass.rank, pass.layer, n}];
      step.rank = pass.rank;
      step.layer = pass.layer;
      step.number = n;
      for (const std::size_t place : frontier[n].tensors) step.tensors.push_back(pass.interior[place]);
      step.bytes += frontier[n].bytes;
      step.time += frontier[n].time;
    }
  }
  std::vector<std::vector<GreedyStep>> by_rank(index.trace().rank_count);
  for (auto& [key, step] : steps) by_rank.at(step.rank).push_back(std::move(step));
  return by_rank;
}

// What no layer's frontier has, tensor by tensor: layers' inputs and outputs, and what lies outside them.
void add_single_steps(RecomputeIndex& index, const std::vector<LayerPass>& passes, Bytes least,
                      std::vector<std::vector<GreedyStep>>& by_rank) {
  std::vector<bool> is_interior(index.saved().size(), false);
  for (const LayerPass& pass : passes)
    for (const std::size_t t : pass.interior) is_interior[t] = true;
  const AwayUntil none = nothing_away(index);
  for (std::size_t t = 0; t < is_interior.size(); ++t) {
    const SavedTensor& saved = index.saved()[t];
    if (is_interior[t] || saved.bytes < least || saved.last_forward == saved.first_backward) continue;
    const std::optional<RecomputeGroup> group = index.group(std::array{t}, none);
    if (group) by_rank.at(saved.rank).push_back({saved.rank, saved.layer, t, {t}, saved.bytes, group->time});
  }
}

void sort_by_price(std::vector<std::vector<GreedyStep>>& by_rank) {
  for (std::vector<GreedyStep>& list : by_rank)
    std::stable_sort(list.begin(), list.end(), [](const GreedyStep& a, const GreedyStep& b) {
      return std::tuple(a.price(), a.layer, a.number) < std::tuple(b.price(), b.layer, b.number);
    });
}

// Those of a layer that are away come back together, others before their own use.
AwayUntil away_together(const RecomputeIndex& index, const std::vector<LayerPass>& passes,
                        const std::vector<bool>& is_away) {
  AwayUntil away = nothing_away(index);
  for (std::size_t t = 0; t < away.size(); ++t)
    if (is_away[t]) away[t] = index.saved()[t].first_backward;
  for (const LayerPass& pass : passes) {
    OpId back = OpId::none;
    for (const std::size_t t : pass.interior) {
      const OpId first = index.saved()[t].first_backward;
      if (is_away[t] && (back == OpId::none || index.position(first) < index.position(back))) back = first;
    }
    for (const std::size_t t : pass.interior)
      if (is_away[t]) away[t] = back;
  }
  return away;
}

ReplayVariation limit_of(const RecomputeSettings& settings) {
  ReplayVariation variation;
  if (settings.budget > Bytes(0)) variation.capacity = settings.budget;
  return variation;
}

class Planner {
 public:
  Planner(const Trace& trace, const Replayer& replayer, const RecomputeSettings& settings,
          const std::function<bool(std::int64_t)>& progress)
      : trace_(trace),
        replayer_(replayer, limit_of(settings)),
        settings_(settings),
        progress_(progress),
        saved_(saved_tensors(trace)),
        index_(trace, saved_),
        has_layers_(std::any_of(saved_.begin(), saved_.end(),
                                [&trace](const SavedTensor& saved) { return is_of_one_layer(trace, saved); })) {}

  RecomputeOutcome run() {
    using enum RecomputeMethod;
    const RecomputeMethod method = settings_.choice.method;
    add({none, 0});
    if (has_layers_ || method == full) add({full, 0});
    if (method == best)
      add_all();
    else if (method != none && method != full)
      add(settings_.choice);
    RecomputeOutcome outcome;
    outcome.replays = replays_;
    const std::size_t chosen = method == none ? 0 : method == best ? best_case() : cases_.size() - 1;
    for (std::size_t c = 0; c < cases_.size(); ++c)
      if (c != chosen) outcome.others.push_back(std::move(cases_[c]));
    outcome.best = std::move(cases_[chosen]);
    return outcome;
  }

 private:
  void add_all() {
    using enum RecomputeMethod;
    if (has_layers_) {
      add({selective, 0});
      for (const std::int64_t k : {2, 3, 4}) add({every, k});
      add({segments, 2});
      add({greedy, 0});
      add({chain, 0});
    }
    const bool is_small = saved_.size() <= most_single;
    if (!cases_.front().may_fit() && (is_small || !cases_[best_case()].may_fit())) add({tensors, 0});
  }
  [[nodiscard]] std::size_t best_case() const {
    std::size_t chosen = 0;
    for (std::size_t c = 1; c < cases_.size(); ++c)
      if (is_preferred(cases_[c], cases_[chosen])) chosen = c;
    return chosen;
  }

  void add(const RecomputeChoice& choice) {
    if (stopped_) return;
    using enum RecomputeMethod;
    std::string name(to_string(choice.method));
    if (choice.k > 0) name += ":" + std::to_string(choice.k);
    switch (choice.method) {
      case none:
        return keep(replayed(nothing_away(index_), name));
      case full:
        return keep(replayed(full_recompute(index_), name));
      case selective:
        return keep(replayed(selective_recompute(index_), name));
      case every:
        return keep(replayed(recompute_every(index_, choice.k), name));
      case segments:
        return keep(replayed(recompute_segments(index_, choice.k), name));
      case greedy:
        return keep(greedy_case());
      case chain:
        return keep(chain_case());
      case exact:
        return keep(exact_case(all_states));
      case tensors:
        return keep(tensors_case());
      case best:
        return;
    }
  }
  void keep(RecomputeCase result) { cases_.push_back(std::move(result)); }

  RecomputeCase replayed(AwayUntil away, std::string name) {
    if (progress_ && !progress_(replays_)) stopped_ = true;
    ++replays_;
    return replay_recompute(index_, std::move(away), replayer_, std::move(name));
  }

  [[nodiscard]] std::vector<bool> ranks_that_may_fit(const RecomputeCase& result) const {
    std::vector<bool> may_fit(trace_.rank_count, result.may_fit());
    if (result.result.ranks.size() == may_fit.size())
      for (std::size_t r = 0; r < may_fit.size(); ++r)
        may_fit[r] = result.result.ranks[r].verdict != Verdict::does_not_fit;
    return may_fit;
  }

  // note_best is told the levels of what is returned, unless nothing was tried.
  // The lowest level of each rank at which it fits, by bisection of all at once; levels most[rank] are taken as the
  // last resort. Levels of one rank don't change another's memory.
  template <class Replay, class Note>
  RecomputeCase lowest(std::vector<std::size_t> most, const Replay& at, const Note& note_best) {
    std::vector<std::size_t> low(most.size(), 0), high = most;
    std::optional<RecomputeCase> found;
    std::vector<std::size_t> found_at;
    while (!stopped_) {
      std::vector<std::size_t> middle(most.size());
      bool is_open = false;
      for (std::size_t r = 0; r < most.size(); ++r) {
        middle[r] = (low[r] + high[r]) / 2;
        is_open |= low[r] < high[r];
      }
      if (!is_open && found_at == high) break;
      RecomputeCase result = at(middle);
      const std::vector<bool> may_fit = ranks_that_may_fit(result);
      for (std::size_t r = 0; r < most.size(); ++r) {
        if (low[r] >= high[r]) continue;
        if (may_fit[r])
          high[r] = middle[r];
        else
          low[r] = middle[r] + 1;
      }
      const bool is_better = !found || is_preferred(result, *found);
      if (is_better || !is_open) found_at = middle;
      if (is_better) {
        found = std::move(result);
        note_best(middle);
      }
      if (!is_open) break;
    }
    return found ? std::move(*found) : at(most);
  }

  RecomputeCase greedy_case() {
    const std::vector<LayerPass> passes = layer_passes(index_);
    std::vector<std::vector<GreedyStep>> steps = greedy_steps(index_, passes, settings_.least_bytes);
    sort_by_price(steps);
    return fewest(passes, steps, "greedy");
  }

  RecomputeCase fewest(const std::vector<LayerPass>& passes, const std::vector<std::vector<GreedyStep>>& steps,
                       const std::string& name) {
    std::vector<std::size_t> most;
    for (const std::vector<GreedyStep>& list : steps) most.push_back(list.size());
    std::vector<const GreedyStep*> taken;  // of the case that lowest() gives
    const auto first = [&steps](const std::vector<std::size_t>& levels) {
      std::vector<const GreedyStep*> now;
      for (std::size_t r = 0; r < steps.size(); ++r)
        for (std::size_t s = 0; s < levels[r]; ++s) now.push_back(&steps[r][s]);
      return now;
    };
    RecomputeCase found = lowest(
        most, [&](const std::vector<std::size_t>& levels) { return replay_steps(passes, first(levels), name); },
        [&](const std::vector<std::size_t>& levels) { taken = first(levels); });
    if (found.may_fit()) take_back(passes, std::move(taken), found);
    return found;
  }

  RecomputeCase replay_steps(const std::vector<LayerPass>& passes, const std::vector<const GreedyStep*>& steps,
                             const std::string& name) {
    std::vector<bool> is_away(saved_.size(), false);
    for (const GreedyStep* step : steps)
      for (const std::size_t t : step->tensors) is_away[t] = true;
    return replayed(away_together(index_, passes, is_away), name);
  }

  // Does without single steps, the most expensive first, where the rest fits and is faster.
  void take_back(const std::vector<LayerPass>& passes, std::vector<const GreedyStep*> taken, RecomputeCase& found) {
    std::stable_sort(taken.begin(), taken.end(),
                     [](const GreedyStep* a, const GreedyStep* b) { return a->time > b->time; });
    std::int64_t left = std::min<std::int64_t>(32, 300'000 / static_cast<std::int64_t>(trace_.ops.size() + 1));
    for (std::size_t s = 0; s < taken.size() && left > 0 && !stopped_; --left) {
      std::vector<const GreedyStep*> without = taken;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(s));
      RecomputeCase result = replay_steps(passes, without, found.name);
      if (!is_preferred(result, found)) {
        ++s;
        continue;
      }
      found = std::move(result);
      taken = std::move(without);
    }
  }

  RecomputeCase chain_case() {
    const LayerChain chain(index_, settings_.least_bytes);
    const std::vector<std::size_t> most(trace_.rank_count, chain_levels);
    return lowest(
        most,
        [&](const std::vector<std::size_t>& levels) {
          std::vector<double> parts;
          for (const std::size_t level : levels)
            parts.push_back(1 - static_cast<double>(level) / static_cast<double>(chain_levels));
          return replayed(chain.away(parts, settings_.chain_slots), "chain");
        },
        [](const std::vector<std::size_t>&) {});
  }

  // What is there when the step begins.
  [[nodiscard]] Bytes held_before() const {
    Bytes held{};
    for (const MemoryEvent& event : trace_.memory_events)
      if (event.action == MemoryAction::allocate && event.anchor == OpId::none && event.device >= 0)
        held += event.bytes;
    return held;
  }

  // Against the capacity less what is held besides the activations: as little as when the step begins, then ever more,
  // up to what it is at the peak of the step that keeps all.
  RecomputeCase exact_case(std::size_t states) {
    const RematProblem problem = remat_problem(index_);
    RecomputeCase found = replayed(nothing_away(index_), "exact");
    if (found.may_fit()) return found;
    Bytes activations{};
    for (const SavedTensor& saved : saved_) activations += saved.bytes;
    const Bytes capacity = replayer_.memory_limit();
    const Bytes low = capacity - (found.result.memory.peak_allocated - activations);
    const Bytes high = std::max(low, capacity - held_before());
    Bytes limit = high;
    for (std::int64_t round = 0; round < exact_rounds && !stopped_; ++round) {
      const RematSolution solution = solve_exact(problem, limit, states);
      if (!solution.is_complete)
        throw InputError("", "--method", "the graph has too many states for the exact method", "use chain or greedy");
      if (!solution.is_possible) break;
      RecomputeCase result = replayed(away_in(problem, solution, index_), "exact");
      const Bytes over = std::max(result.result.memory.excess(), (high - low) / exact_rounds);
      if (is_preferred(result, found)) found = std::move(result);
      if (found.may_fit() || limit <= low) break;
      limit = round + 2 < exact_rounds ? std::max(low, limit - over) : low;
    }
    return found;
  }

  // With every tensor a choice: the fewest of the cheapest, the exact plan where the graph is small, and what a search
  // from the best of all makes of it.
  RecomputeCase tensors_case() {
    const std::vector<LayerPass> passes = has_layers_ ? layer_passes(index_) : std::vector<LayerPass>();
    std::vector<std::vector<GreedyStep>> steps = has_layers_ ? greedy_steps(index_, passes, settings_.least_bytes)
                                                             : std::vector<std::vector<GreedyStep>>(trace_.rank_count);
    add_single_steps(index_, passes, settings_.least_bytes, steps);
    sort_by_price(steps);
    RecomputeCase found = fewest(passes, steps, "tensors");
    const auto consider = [&found](const RecomputeCase& other) {
      if (is_preferred(other, found)) found = other;
    };
    for (const RecomputeCase& other : cases_) consider(other);
    for (const std::int64_t k : {2, 3, 4, 6, 8}) consider(replayed(segments_of_tensors(k), "tensors"));
    if (trace_.rank_count == 1 && saved_.size() <= most_exact_values) {
      try {
        consider(exact_case(most_states));
      } catch (const InputError&) {  // not a graph for it
      }
    }
    const TensorSearchLimits limits = search_limits();
    if (saved_.size() <= most_single)
      found = search_tensors(
          index_, found, [this](AwayUntil away) { return replayed(std::move(away), "tensors"); }, limits);
    found.name = "tensors";
    found.plan.technique = "recompute tensors";
    return found;
  }
  // Of every k in a row one stays, and the others come back together (Chen et al. 2016, tensor by tensor).
  [[nodiscard]] AwayUntil segments_of_tensors(std::int64_t k) const {
    AwayUntil away = nothing_away(index_);
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<std::size_t>> passes;  // rank, micro-batch
    for (std::size_t t = 0; t < saved_.size(); ++t)
      if (saved_[t].last_forward != saved_[t].first_backward)
        passes[{saved_[t].rank, saved_[t].micro_batch}].push_back(t);
    for (const auto& [key, tensors] : passes)
      for (std::size_t begin = 0; begin < tensors.size(); begin += static_cast<std::size_t>(k)) {
        const std::size_t end = std::min(tensors.size(), begin + static_cast<std::size_t>(k));
        OpId back = saved_[tensors[begin]].first_backward;
        for (std::size_t i = begin + 1; i < end; ++i)
          if (index_.position(saved_[tensors[i]].first_backward) < index_.position(back))
            back = saved_[tensors[i]].first_backward;
        for (std::size_t i = begin + 1; i < end; ++i)
          if (index_.position(back) > index_.position(saved_[tensors[i]].last_forward)) away[tensors[i]] = back;
      }
    return away;
  }
  [[nodiscard]] TensorSearchLimits search_limits() const {
    const auto ops = static_cast<std::int64_t>(trace_.ops.size() + 1);
    return {.least = saved_.size() <= most_searched ? Bytes(1) : settings_.least_bytes,
            .leaves = std::clamp<std::int64_t>(4'000'000 / ops, 100, 20'000),
            .replays = std::clamp<std::int64_t>(300'000 / ops, 20, 1'000)};
  }

  const Trace& trace_;
  VariedReplayer replayer_;  // to the budget
  const RecomputeSettings& settings_;
  const std::function<bool(std::int64_t)>& progress_;
  std::vector<SavedTensor> saved_;
  RecomputeIndex index_;
  bool has_layers_;
  std::vector<RecomputeCase> cases_;
  std::int64_t replays_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::string_view to_string(RecomputeMethod method) {
  switch (method) {
    case RecomputeMethod::none:
      return "none";
    case RecomputeMethod::selective:
      return "selective";
    case RecomputeMethod::full:
      return "full";
    case RecomputeMethod::every:
      return "every";
    case RecomputeMethod::segments:
      return "segments";
    case RecomputeMethod::greedy:
      return "greedy";
    case RecomputeMethod::chain:
      return "chain";
    case RecomputeMethod::exact:
      return "exact";
    case RecomputeMethod::tensors:
      return "tensors";
    case RecomputeMethod::best:
      return "best";
  }
  return "best";
}

RecomputeChoice parse_recompute_choice(std::string_view text) {
  using enum RecomputeMethod;
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  for (const RecomputeMethod method : {none, selective, full, every, segments, greedy, chain, exact, tensors, best}) {
    if (to_string(method) != word) continue;
    const bool has_number = method == every || method == segments;
    if (has_number != (colon != std::string_view::npos)) break;
    RecomputeChoice choice{method, 0};
    if (!has_number) return choice;
    const std::string_view digits = text.substr(colon + 1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), choice.k);
    if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && choice.k >= 1) return choice;
    break;
  }
  throw InputError(
      "", "--method", "\"" + std::string(text) + "\" is no method of recomputation",
      "one of none, selective, full, every:K, segments:K, chain, greedy, exact, tensors, best; K is at least 1");
}

static void require_recorded_uses(const Trace& trace) {
  if (trace.is_inferred(Capability::uses))
    throw InputError(
        trace.provenance.empty() ? "" : trace.provenance.front().file, "uses",
        "inferred uses don't say what an op needs to run again",
        "join the capture with an ExecutionTrace of the same step, with the same lifetimes of tensors, or plan "
        "a generated step");
}

RecomputeCase replay_recompute(RecomputeIndex& index, AwayUntil away, const Replayer& replayer, std::string name) {
  RecomputeCase result;
  result.name = std::move(name);
  result.plan.technique = "recompute " + result.name;
  const auto count = [&away] {
    return away.size() - static_cast<std::size_t>(std::count(away.begin(), away.end(), OpId::none));
  };
  const std::size_t asked = count();
  const std::vector<RecomputeGroup> groups = index.groups(away);
  result.refused = asked - count();
  if (!groups.empty()) require_recorded_uses(index.trace());
  for (const RecomputeGroup& group : groups) {
    add_to_plan(group, index, result.plan);
    result.again += group.time;
    result.repeated += static_cast<std::int64_t>(group.ops.size());
    for (const std::size_t t : group.tensors) result.away += index.saved()[t].bytes;
  }
  result.result = replayer.replay(planned_trace(index.trace(), result.plan));
  return result;
}

RecomputeOutcome plan_recompute(const Trace& trace, const Replayer& replayer, const RecomputeSettings& settings,
                                const std::function<bool(std::int64_t)>& progress) {
  return Planner(trace, replayer, settings, progress).run();
}

}  // namespace spillway::planners
