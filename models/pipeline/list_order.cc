#include "models/pipeline/list_order.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "base/input_error.h"
#include "models/pipeline/plan_lane.h"

namespace spillway::models {
namespace {

constexpr Ticks never = std::numeric_limits<Ticks>::max();

// One position of one route: which of its micro-batches go next, and when their inputs are there.
struct Site {
  std::size_t route = 0, position = 0;
  std::int64_t chunk = 0;
  std::size_t forwards = 0, backwards = 0;     // done
  std::vector<Ticks> forward_at, backward_at;  // when each micro-batch of the route may run; never: not known yet
};

class ListPlay {
 public:
  ListPlay(PipelinePlan& plan, const ListRules& rules) : plan_(plan), rules_(rules) {
    by_route_.resize(plan.routes.size());
    for (std::int64_t j = 0; j < plan.micro_batches; ++j) by_route_[plan.route(j)].push_back(j);
    sites_.resize(static_cast<std::size_t>(plan.devices));
    where_.resize(plan.routes.size());
    for (std::size_t r = 0; r < plan.routes.size(); ++r) {
      for (std::size_t at = 0; at < plan.routes[r].size(); ++at) {
        const PipelinePlan::Place place = plan.routes[r][at];
        auto& here = sites_[static_cast<std::size_t>(place.device)];
        where_[r].push_back(here.size());
        here.push_back({.route = r, .position = at, .chunk = place.chunk, .forward_at = {}, .backward_at = {}});
        here.back().forward_at.assign(by_route_[r].size(), at == 0 ? 0 : never);
        here.back().backward_at.assign(by_route_[r].size(), never);
      }
    }
    free_at_.assign(static_cast<std::size_t>(plan.devices), 0);
    held_.assign(free_at_.size(), 0);
  }

  void play() {
    const std::size_t passes = static_cast<std::size_t>(plan_.micro_batches * plan_.positions()) * 2;
    for (std::size_t done = 0; done < passes; ++done) {
      Choice best;
      for (std::size_t d = 0; d < sites_.size(); ++d) best = std::min(best, choose(d));
      SPILLWAY_ASSERT(best.start != never);
      run(best);
    }
  }

 private:
  struct Choice {
    Ticks start = never;
    std::int64_t unit = 0, is_forward = 0, depth = 0, micro_batch = 0;
    std::size_t device = 0, site = 0;
    [[nodiscard]] auto key() const { return std::tie(start, unit, is_forward, depth, micro_batch, device); }
    bool operator<(const Choice& other) const { return key() < other.key(); }
  };

  [[nodiscard]] bool may_enter(std::size_t device) const { return held_[device] < rules_.held; }

  Choice choose(std::size_t d) const {
    Choice best;
    for (std::size_t s = 0; s < sites_[d].size(); ++s) {
      const Site& site = sites_[d][s];
      const auto& batches = by_route_[site.route];
      if (site.backwards < batches.size() && site.backward_at[site.backwards] != never)
        best = std::min(
            best, {std::max(free_at_[d], site.backward_at[site.backwards]), batches[site.backwards] / rules_.unit, 0,
                   -static_cast<std::int64_t>(site.position), batches[site.backwards], d, s});
      if (site.forwards < batches.size() && site.forward_at[site.forwards] != never &&
          (site.position > 0 || may_enter(d)))
        best =
            std::min(best, {std::max(free_at_[d], site.forward_at[site.forwards]), batches[site.forwards] / rules_.unit,
                            1, -static_cast<std::int64_t>(site.position), batches[site.forwards], d, s});
    }
    return best;
  }

  void run(const Choice& choice) {
    Site& site = sites_[choice.device][choice.site];
    const PassTimes& times = rules_.times.at(site.position);
    PlanLane lane(plan_.compute[choice.device]);
    const bool is_forward = choice.is_forward == 1;
    const Ticks end = choice.start + (is_forward ? times.forward : times.backward());
    free_at_[choice.device] = end;
    held_[choice.device] += is_forward ? 1 : -1;
    const std::size_t turn = is_forward ? site.forwards++ : site.backwards++;
    const std::size_t last = plan_.routes[site.route].size() - 1;
    if (is_forward) {
      lane.forward(pass_of(choice.micro_batch, site.chunk));
      if (site.position == last)
        site.backward_at[turn] = end;
      else
        next(site, 1).forward_at[turn] = arrival(site, choice.device, 1, end);
    } else {
      lane.backward(pass_of(choice.micro_batch, site.chunk));
      if (site.position > 0) next(site, -1).backward_at[turn] = arrival(site, choice.device, -1, end);
    }
  }

  [[nodiscard]] std::size_t neighbour(const Site& site, int step) const {
    const std::size_t at = step > 0 ? site.position + 1 : site.position - 1;
    return static_cast<std::size_t>(plan_.routes[site.route][at].device);
  }
  Site& next(const Site& site, int step) {
    const std::size_t at = step > 0 ? site.position + 1 : site.position - 1;
    return sites_[neighbour(site, step)][where_[site.route][at]];
  }
  [[nodiscard]] Ticks arrival(const Site& site, std::size_t device, int step, Ticks end) const {
    return end + (neighbour(site, step) == device ? 0 : rules_.times.transfer);
  }

  PipelinePlan& plan_;
  const ListRules& rules_;
  std::vector<std::vector<std::int64_t>> by_route_;
  std::vector<std::vector<Site>> sites_;         // by device
  std::vector<std::vector<std::size_t>> where_;  // by route and position: place in the device's sites
  std::vector<Ticks> free_at_;
  std::vector<std::int64_t> held_;  // chunks' activations, by device
};

}  // namespace

void write_list_order(PipelinePlan& plan, const ListRules& rules) {
  SPILLWAY_ASSERT(rules.held >= 1);
  ListPlay(plan, rules).play();
}

}  // namespace spillway::models
