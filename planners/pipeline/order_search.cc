#include "planners/pipeline/order_search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "models/pipeline/plan_lane.h"

namespace spillway::planners {
namespace {

// Decisions as a tree: states of a beam share their beginnings.
struct Step {
  std::shared_ptr<const Step> before;
  OrderSpace::Choice choice;
};

std::vector<OrderSpace::Choice> path(std::shared_ptr<const Step> step) {
  std::vector<OrderSpace::Choice> choices;
  for (; step; step = step->before) choices.push_back(step->choice);
  std::reverse(choices.begin(), choices.end());
  return choices;
}

// Long chains would otherwise be freed by as deep a recursion.
void release(std::shared_ptr<const Step> step) {
  while (step && step.use_count() == 1) step = std::shared_ptr<const Step>(step->before);
}

struct BeamState {
  OrderSpace::State state;
  std::shared_ptr<const Step> last;
};

struct Child {
  std::size_t parent = 0;
  OrderSpace::Choice choice;
  Ticks bound = 0, idle = 0;
};

}  // namespace

std::optional<FoundOrder> beam_search(const OrderSpace& space, std::size_t width,
                                      const std::function<bool()>& progress) {
  std::vector<BeamState> beam, next;
  beam.push_back({space.root(), nullptr});
  std::vector<OrderSpace::Choice> choices;
  std::vector<Child> children;
  for (std::size_t depth = 0; depth < space.decisions() && !beam.empty(); ++depth) {
    if (depth % 64 == 0 && progress && !progress()) return std::nullopt;
    children.clear();
    for (std::size_t parent = 0; parent < beam.size(); ++parent) {
      OrderSpace::State& state = beam[parent].state;
      space.choices(state, choices);
      const Ticks idle = space.idle(state);
      for (const OrderSpace::Choice& choice : choices) {
        const Ticks gap = choice.start - state.clock[space.device_of(choice.position)];
        children.push_back({parent, choice, space.bound_after(state, choice), idle + gap});
      }
    }
    const auto before = [](const Child& a, const Child& b) {
      return std::tie(a.bound, a.idle, a.choice.end, a.parent, a.choice.position, a.choice.kind) <
             std::tie(b.bound, b.idle, b.choice.end, b.parent, b.choice.position, b.choice.kind);
    };
    std::sort(children.begin(), children.end(), before);
    next.clear();
    std::map<std::pair<std::vector<std::int32_t>, std::vector<Ticks>>, bool> seen;
    for (const Child& child : children) {
      if (next.size() == width) break;
      BeamState made = beam[child.parent];
      space.take(made.state, child.choice);
      if (!seen.emplace(std::pair(made.state.done, made.state.clock), true).second) continue;
      made.last = std::make_shared<const Step>(Step{made.last, child.choice});
      next.push_back(std::move(made));
    }
    for (BeamState& old : beam) release(std::move(old.last));
    beam.swap(next);
  }
  if (beam.empty()) return std::nullopt;
  const BeamState* best = &beam[0];
  const auto end_of = [](const BeamState& each) {
    return *std::max_element(each.state.clock.begin(), each.state.clock.end());
  };
  for (const BeamState& each : beam)
    if (end_of(each) < end_of(*best)) best = &each;
  FoundOrder found{end_of(*best), path(best->last)};
  for (BeamState& old : beam) release(std::move(old.last));
  return found;
}

namespace {

class DepthFirst {
 public:
  DepthFirst(const OrderSpace& space, Ticks upper, std::int64_t effort, const std::function<bool()>& progress)
      : space_(space), upper_(upper), effort_(effort), progress_(progress), state_(space.root()) {}

  ExactOrder run() {
    if (space_.bound(state_) < upper_) visit();
    return {std::move(best_), !stopped_};
  }

 private:
  struct Branch {
    OrderSpace::Choice choice;
    Ticks bound = 0;
  };

  void visit() {
    if (stopped_) return;
    if (++visited_ > effort_ || (visited_ % 4096 == 0 && progress_ && !progress_())) {
      stopped_ = true;
      return;
    }
    if (state_.decided == space_.decisions()) {
      upper_ = *std::max_element(state_.clock.begin(), state_.clock.end());
      best_ = FoundOrder{upper_, choices_};
      return;
    }
    if (is_dominated()) return;
    std::vector<OrderSpace::Choice> possible;
    space_.choices(state_, possible);
    std::vector<Branch> branches;
    for (const OrderSpace::Choice& choice : possible) branches.push_back({choice, space_.bound_after(state_, choice)});
    std::stable_sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) {
      return std::tie(a.bound, a.choice.end) < std::tie(b.bound, b.choice.end);
    });
    for (const Branch& branch : branches) {
      if (branch.bound >= upper_) break;
      const std::size_t device = space_.device_of(branch.choice.position);
      const Ticks clock = state_.clock[device];
      const std::int64_t held = state_.held[device];
      space_.take(state_, branch.choice);
      choices_.push_back(branch.choice);
      visit();
      choices_.pop_back();
      undo(branch.choice, device, clock, held);
      if (stopped_) return;
    }
  }

  void undo(const OrderSpace::Choice& choice, std::size_t device, Ticks clock, std::int64_t held) {
    --state_.done[OrderSpace::slot(choice.position, choice.kind)];
    --state_.decided;
    state_.clock[device] = clock;
    state_.held[device] = held;
    if (choice.kind != OrderSpace::weight) state_.ends[choice.position * 2 + choice.kind].pop_back();
  }

  // What the rest of the step can tell apart of two states with the same passes done: the devices' clocks, and when
  // results come that nobody has used yet.
  std::vector<Ticks> profile() const {
    std::vector<Ticks> out = state_.clock;
    for (std::size_t q = 0; q < space_.positions(); ++q) {
      const bool is_last = q + 1 == space_.positions();
      const auto used = [&](std::size_t position, OrderSpace::Kind kind) {
        return static_cast<std::size_t>(state_.done[OrderSpace::slot(position, kind)]);
      };
      // A result that is there before its user is free comes at no other time than that.
      const auto add = [&](OrderSpace::Kind kind, std::size_t user, Ticks lag) {
        const auto& ends = state_.ends[q * 2 + kind];
        for (std::size_t j = used(user, kind); j < ends.size(); ++j)
          out.push_back(std::max(ends[j] + lag, state_.clock[space_.device_of(user)]));
      };
      if (!is_last) add(OrderSpace::forward, q + 1, space_.lag(q));
      if (q > 0) add(OrderSpace::input, q - 1, space_.lag(q - 1));
    }
    return out;
  }

  bool is_dominated() {
    std::vector<Ticks> mine = profile();
    auto& others = seen_[state_.done];
    const auto covers = [](const std::vector<Ticks>& a, const std::vector<Ticks>& b) {
      for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] > b[i]) return false;
      return true;
    };
    for (const auto& other : others)
      if (covers(other, mine)) return true;
    std::erase_if(others, [&](const std::vector<Ticks>& other) { return covers(mine, other); });
    others.push_back(std::move(mine));
    return false;
  }

  const OrderSpace& space_;
  Ticks upper_;
  std::int64_t effort_, visited_ = 0;
  const std::function<bool()>& progress_;
  OrderSpace::State state_;
  std::vector<OrderSpace::Choice> choices_;
  std::optional<FoundOrder> best_;
  std::map<std::vector<std::int32_t>, std::vector<std::vector<Ticks>>> seen_;
  bool stopped_ = false;
};

}  // namespace

ExactOrder exact_search(const OrderSpace& space, Ticks upper, std::int64_t effort,
                        const std::function<bool()>& progress) {
  return DepthFirst(space, upper, effort, progress).run();
}

void write_order(const OrderSpace& space, const FoundOrder& order, PipelinePlan& plan) {
  for (auto& lane : plan.compute) lane.clear();
  std::vector<std::int32_t> turns(space.positions() * OrderSpace::kind_count, 0);
  for (const OrderSpace::Choice& choice : order.choices) {
    PlanLane lane(plan.compute[space.device_of(choice.position)]);
    const PipelinePass pass =
        pass_of(turns[OrderSpace::slot(choice.position, choice.kind)]++, space.chunk_of(choice.position));
    if (choice.kind == OrderSpace::forward) lane.forward(pass);
    if (choice.kind == OrderSpace::input) lane.input_gradient(pass);
    if (choice.kind == OrderSpace::weight) lane.weight_gradient(pass);
  }
}

}  // namespace spillway::planners
