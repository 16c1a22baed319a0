#include "planners/stalloc/stalloc_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/input_error.h"
#include "planners/layout/layout_check.h"
#include "planners/stalloc/homo_phase.h"
#include "planners/stalloc/homo_size.h"
#include "planners/stalloc/reusable_space.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t step = 512;

Bytes rounded(Bytes bytes) { return Bytes((bytes.count() + step - 1) / step * step); }

class Planner {
 public:
  Planner(const MemoryProfile& profile, const StallocOptions& options) : profile_(profile), options_(options) {}

  StallocPlan run() {
    sort_out();
    if (options_.algorithm == StallocAlgorithm::best)
      plan_best();
    else
      stack_regions(options_.algorithm);
    finish();
    return std::move(result_);
  }

 private:
  struct Static {
    std::size_t request = 0;
    RequestClass kind = RequestClass::transient;
    LayoutBuffer life;
  };

  void sort_out() {
    std::uint64_t ordinal = 0;  // above 512 bytes
    for (std::size_t i = 0; i < profile_.requests.size(); ++i) {
      const ProfiledRequest& request = profile_.requests[i];
      const RequestClass kind = profile_.class_of(request);
      ++result_.requests[static_cast<std::size_t>(kind)];
      if (kind == RequestClass::unreleased) result_.plan.cached.push_back(ordinal);
      if (kind != RequestClass::small) ++ordinal;
      if (kind == RequestClass::small || kind == RequestClass::unreleased || kind == RequestClass::repeated ||
          kind == RequestClass::dynamic)
        continue;
      if (request.lower < profile_.period_begin()) result_.plan.period_begin = static_.size() + 1;
      static_.push_back({i, kind, life_of(request)});
    }
    if (result_.plan.period_begin >= static_.size()) result_.plan.period_begin = 0;
    const auto [small, all] = peaks();
    result_.plan.small_peak = Bytes(small);
    result_.allocated = Bytes(all);
    std::vector<LayoutBuffer> lives;
    for (const Static& one : static_) lives.push_back(one.life);
    result_.lower_bound = Bytes(max_live(lives));
  }
  // What the plan has to keep free for it.
  [[nodiscard]] LayoutBuffer life_of(const ProfiledRequest& request) const {
    LayoutBuffer life{.lower = request.lower, .upper = request.upper, .size = rounded(request.bytes).count()};
    const bool comes_back = !profile_.iterations.empty() && request.lower >= profile_.period_begin();
    if (comes_back && (request.upper > profile_.period_end() || !request.freed)) life.lower = profile_.period_begin();
    life.upper = std::min(life.upper, profile_.period_end());
    return life;
  }
  // Of the small ones, in slots, and of all.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> peaks() const {
    std::vector<LayoutBuffer> small, all;
    for (const ProfiledRequest& request : profile_.requests) {
      const LayoutBuffer life{.lower = request.lower, .upper = request.upper, .size = rounded(request.bytes).count()};
      if (life.size <= step) small.push_back(life);
      all.push_back(life);
    }
    return {max_live(small), max_live(all)};
  }

  // The lowest of several, the cheap ones last: one layout of everything, one above what is held to the end, and the
  // published ones. Ends with the first that reaches the bound.
  void plan_best() {
    std::vector<std::int64_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto consider = [&] {
      std::int64_t height = 0;
      for (std::size_t i = 0; i < static_.size(); ++i) height = std::max(height, offsets_[i] + static_[i].life.size);
      if (height < least) best = offsets_;
      least = std::min(least, height);
      return least == result_.lower_bound.count();
    };
    std::vector<LayoutBuffer> lives;
    for (const Static& one : static_) lives.push_back(one.life);
    offsets_ = lay_out(lives);
    bool is_done = consider();
    for (const StallocAlgorithm algorithm :
         {StallocAlgorithm::best, StallocAlgorithm::split_and_fuse, StallocAlgorithm::group}) {
      if (is_done) break;
      stack_regions(algorithm);
      is_done = consider();
    }
    offsets_ = std::move(best);
  }
  [[nodiscard]] std::vector<std::int64_t> lay_out(std::vector<LayoutBuffer> lives) const {
    for (LayoutBuffer& life : lives) life.alignment = step;
    LayoutOptions options;
    options.threads = options_.threads;
    options.effort = options_.effort > 0 ? options_.effort : 1'000'000 + 4 * static_cast<std::int64_t>(lives.size());
    return solve_layout(lives, options).offsets;
  }

  void stack_regions(StallocAlgorithm algorithm) {
    offsets_.assign(static_.size(), 0);
    std::int64_t held = 0, early = 0;
    std::vector<std::size_t> initial, rest;
    for (const bool before : {true, false}) {
      for (std::size_t i = 0; i < static_.size(); ++i) {
        if (static_[i].kind != RequestClass::persistent || is_early(static_[i]) != before) continue;
        offsets_[i] = held;
        held += static_[i].life.size;
      }
      if (before) early = held;
    }
    for (std::size_t i = 0; i < static_.size(); ++i) {
      if (static_[i].kind == RequestClass::initial)
        initial.push_back(i);
      else if (static_[i].kind != RequestClass::persistent)
        rest.push_back(i);
    }
    pack(initial, early, StallocAlgorithm::split_and_fuse);
    pack(rest, held, algorithm);
  }
  // From before the iterations: weights and gradients.
  [[nodiscard]] bool is_early(const Static& one) const {
    return profile_.iterations.empty() || profile_.requests[one.request].lower < profile_.iterations.front();
  }
  void pack(const std::vector<std::size_t>& members, std::int64_t base, StallocAlgorithm algorithm) {
    std::vector<LayoutBuffer> lives;
    std::vector<PhasedRequest> phased;
    for (const std::size_t i : members) {
      const ProfiledRequest& request = profile_.requests[static_[i].request];
      lives.push_back(static_[i].life);
      phased.push_back({static_[i].life, request.phase_allocated, request.phase_freed});
    }
    const std::vector<std::int64_t> offsets = algorithm == StallocAlgorithm::group  ? group_by_phase(phased)
                                              : algorithm == StallocAlgorithm::best ? lay_out(lives)
                                                                                    : layer_by_size(lives);
    for (std::size_t m = 0; m < members.size(); ++m) offsets_[members[m]] = base + offsets[m];
  }

  void finish() {
    std::vector<LaidBuffer> laid;
    for (std::size_t i = 0; i < static_.size(); ++i) {
      const LayoutBuffer& life = static_[i].life;
      laid.push_back({life.lower, life.upper, life.size, offsets_[i], step});
      result_.plan.places.push_back({Bytes(offsets_[i]), Bytes(life.size)});
    }
    const LayoutVerdict verdict = check_layout(laid);
    SPILLWAY_ASSERT(verdict.legal() && verdict.height >= result_.lower_bound.count());
    result_.plan.pool = Bytes(verdict.height);
    ReusableSpaces spaces = reusable_spaces(profile_, laid, result_.plan.pool);
    result_.plan.spaces = std::move(spaces.spaces);
    result_.spaces = std::move(spaces.of_request);
    for (std::size_t i = 0; i < result_.spaces.size(); ++i)
      if (result_.spaces[i] != RequestSpace::planned) result_.plan.dynamic.push_back({i, result_.spaces[i]});
    check_plan(result_.plan, "");
  }

  const MemoryProfile& profile_;
  const StallocOptions& options_;
  std::vector<Static> static_;  // in order of allocation
  std::vector<std::int64_t> offsets_;
  StallocPlan result_;
};

}  // namespace

StallocPlan plan_stalloc(const MemoryProfile& profile, const StallocOptions& options) {
  StallocPlan made = Planner(profile, options).run();
  made.plan.technique = stalloc_word;
  return made;
}

Trace stream_of(const MemoryProfile& profile) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  struct Event {
    std::int64_t tick = 0;
    std::size_t request = 0;
    bool is_free = false;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < profile.requests.size(); ++i) {
    const ProfiledRequest& request = profile.requests[i];
    events.push_back({request.lower, i, false});
    if (request.freed && request.upper < never) events.push_back({request.upper, i, true});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.tick, !a.is_free) < std::pair(b.tick, !b.is_free);
  });
  Trace trace;
  trace.memory_size_is_requested = true;
  const LaneId stream = trace.lane({.kind = LaneKind::stream, .rank = 0, .device = 0, .number = 0});
  for (const Event& event : events) {
    const MemoryAction action = event.is_free ? MemoryAction::free_completed : MemoryAction::allocate;
    MemoryEvent row;
    row.time = Picos(event.tick);
    row.address = Addr(static_cast<std::uint64_t>(event.request + 1) << 16U);
    row.bytes = profile.requests[event.request].bytes;
    row.stream = stream;
    if (event.is_free) {
      row.action = MemoryAction::free_requested;
      trace.memory_events.push_back(row);
    }
    row.action = action;
    trace.memory_events.push_back(row);
  }
  trace.set(Capability::memory);
  return trace;
}

}  // namespace spillway::planners
