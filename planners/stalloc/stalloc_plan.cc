#include "planners/stalloc/stalloc_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "planners/layout/emulated_layout.h"
#include "planners/layout/layout_check.h"
#include "planners/stalloc/homo_phase.h"
#include "planners/stalloc/homo_size.h"
#include "planners/stalloc/reusable_space.h"
#include "sim/devices/memory/planned_pool.h"

namespace spillway::planners {
namespace {

constexpr std::int64_t step = 512;
// Best has what the published planners make only where that takes as long as its own search.
constexpr std::int64_t looks_per_placement = 20;

Bytes rounded(Bytes bytes) { return Bytes((bytes.count() + step - 1) / step * step); }

class Planner {
 public:
  Planner(const MemoryProfile& profile, const StallocOptions& options) : profile_(profile), options_(options) {}

  StallocPlan run() {
    sort_out();
    if (!is_best()) {
      stack_regions(options_.algorithm, std::numeric_limits<std::int64_t>::max());
      return finish(0);
    }
    plan_best();
    StallocPlan apart = finish(0);
    if (dynamic_.empty()) return apart;
    StallocPlan together = plan_with_dynamic();
    return peak_reserved(together) < peak_reserved(apart) ? together : apart;
  }

 private:
  struct Static {
    const ProfiledRequest* request = nullptr;
    RequestClass kind = RequestClass::transient;
    LayoutBuffer life;
  };

  [[nodiscard]] bool is_best() const { return options_.algorithm == StallocAlgorithm::best; }

  void sort_out() {
    std::uint64_t ordinal = 0;  // above 512 bytes
    for (std::size_t i = 0; i < profile_.requests.size(); ++i) {
      const ProfiledRequest& request = profile_.requests[i];
      const RequestClass kind = profile_.class_of(request);
      ++result_.requests[static_cast<std::size_t>(kind)];
      const bool is_cached = kind == RequestClass::unreleased && !is_best();
      if (is_cached) result_.plan.cached.push_back(ordinal);
      if (kind != RequestClass::small) ++ordinal;
      if (kind == RequestClass::dynamic) dynamic_.push_back(i);
      if (kind == RequestClass::small || is_cached || kind == RequestClass::repeated || kind == RequestClass::dynamic)
        continue;
      if (request.lower < profile_.period_begin()) result_.plan.period_begin = static_.size() + 1;
      static_.push_back({&request, kind, life_of(request)});
    }
    if (result_.plan.period_begin >= static_.size()) result_.plan.period_begin = 0;
    planned_ = static_.size();
    if (is_best()) add_blocks_before();
    const auto [small, all] = peaks();
    result_.plan.small_peak = Bytes(small);
    result_.allocated = Bytes(all);
    std::vector<LayoutBuffer> lives;
    for (const Static& one : static_) lives.push_back(one.life);
    result_.lower_bound = Bytes(max_live(lives));
  }
  void add_blocks_before() {
    for (const ProfiledRequest& block : profile_.before) {
      const LayoutBuffer life = life_of(block);
      const bool is_held = life.upper == profile_.period_end();
      static_.push_back({&block, is_held ? RequestClass::persistent : RequestClass::transient, life});
    }
  }
  // What the plan has to keep free for it.
  [[nodiscard]] LayoutBuffer life_of(const ProfiledRequest& request) const {
    LayoutBuffer life{.lower = request.lower, .upper = request.upper, .size = rounded(request.bytes).count()};
    const bool comes_back = profile_.repeats() && request.lower >= profile_.period_begin();
    if (comes_back && (request.upper > profile_.period_end() || !request.freed)) life.lower = profile_.period_begin();
    life.upper = std::min(life.upper, profile_.period_end());
    return life;
  }
  // Of the small ones, in slots, and of all.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> peaks() const {
    std::vector<LayoutBuffer> small, all;
    const auto plain = [](const ProfiledRequest& request) {
      return LayoutBuffer{.lower = request.lower, .upper = request.upper, .size = rounded(request.bytes).count()};
    };
    for (const ProfiledRequest& request : profile_.requests) {
      all.push_back(plain(request));
      if (all.back().size <= step) small.push_back(all.back());
    }
    for (const ProfiledRequest& block : profile_.before) all.push_back(plain(block));
    return {max_live(small), max_live(all)};
  }

  // The lowest of several: one layout of everything, one above what is held to the end, the published ones, and what
  // PyTorch's allocator would make. Ends with the first that reaches the bound.
  void plan_best() {
    std::vector<LayoutBuffer> lives;
    for (const Static& one : static_) lives.push_back(one.life);
    std::vector<std::int64_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto consider = [&] {
      const std::int64_t height = height_of(lives, offsets_);
      if (height < least) best = offsets_;
      least = std::min(least, height);
      return least == result_.lower_bound.count();
    };
    offsets_ = lay_out(lives);
    bool is_done = consider();
    const std::int64_t most_looks = looks_per_placement * options_of(lives.size()).effort;
    for (const StallocAlgorithm algorithm :
         {StallocAlgorithm::best, StallocAlgorithm::split_and_fuse, StallocAlgorithm::group}) {
      if (is_done) break;
      is_done = stack_regions(algorithm, most_looks) && consider();
    }
    if (!is_done) {
      offsets_ = emulated_layout(lives);
      consider();
    }
    offsets_ = std::move(best);
  }

  // Dynamic requests get places too, which they have while they are no larger than profiled.
  StallocPlan plan_with_dynamic() {
    std::vector<LayoutBuffer> lives;
    for (const Static& one : static_) lives.push_back(one.life);
    for (const std::size_t i : dynamic_) lives.push_back(life_of(profile_.requests[i]));
    const LayoutResult layout = lay_out_step(aligned(lives), options_of(lives.size()));
    offsets_.assign(layout.offsets.begin(), layout.offsets.begin() + static_cast<std::ptrdiff_t>(static_.size()));
    StallocPlan made = finish(layout.height);
    made.lower_bound = Bytes(layout.lower_bound);
    std::map<std::size_t, PlannedPlace> places;
    for (std::size_t d = 0; d < dynamic_.size(); ++d)
      places[dynamic_[d]] = {Bytes(layout.offsets[static_.size() + d]), Bytes(lives[static_.size() + d].size)};
    for (const std::size_t like : requests_like(made)) {
      const auto found = places.find(like);
      made.plan.dynamic_places.push_back(found == places.end() ? PlannedPlace{} : found->second);
    }
    check_plan(made.plan, "");
    return made;
  }
  // Of each of the plan's dynamic requests: the planned one whose place it has. Later iterations' go by their number
  // within the space and the iteration.
  [[nodiscard]] std::vector<std::size_t> requests_like(const StallocPlan& made) const {
    std::map<RequestSpace, std::vector<std::size_t>> repeated;  // of the period
    std::map<std::pair<std::int64_t, RequestSpace>, std::size_t> count;
    std::vector<std::size_t> like;
    for (const PlannedSpace& dynamic : made.plan.dynamic) {
      const ProfiledRequest& request = profile_.requests[dynamic.request];
      if (request.lower < profile_.period_end()) {
        like.push_back(dynamic.request);
        if (request.lower >= profile_.period_begin()) repeated[dynamic.space].push_back(dynamic.request);
        continue;
      }
      const std::vector<std::size_t>& same = repeated[dynamic.space];
      const std::int64_t iteration =
          std::upper_bound(profile_.iterations.begin(), profile_.iterations.end(), request.lower) -
          profile_.iterations.begin();
      const std::size_t number = count[{iteration, dynamic.space}]++;
      like.push_back(number < same.size() ? same[number] : profile_.requests.size());
    }
    return like;
  }

  // Of the profiled stream, under the plan.
  [[nodiscard]] std::int64_t peak_reserved(const StallocPlan& made) const {
    struct Event {
      std::int64_t tick = 0;
      bool is_allocation = false;
      std::size_t request = 0;
    };
    const std::size_t before = profile_.before.size(), all = before + profile_.requests.size();
    const auto at = [&](std::size_t i) { return i < before ? profile_.before[i] : profile_.requests[i - before]; };
    std::vector<Event> events;
    for (std::size_t i = 0; i < all; ++i) {
      events.push_back({i < before ? -1 : at(i).lower, true, i});
      if (at(i).freed) events.push_back({at(i).upper, false, i});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.tick, a.is_allocation, a.request) < std::tuple(b.tick, b.is_allocation, b.request);
    });
    PlannedPool pool(std::make_shared<const MemoryPlan>(made.plan), TorchSettings{});
    std::vector<BlockId> blocks(all, BlockId::none);
    for (const Event& event : events) {
      if (!event.is_allocation) {
        pool.free(blocks[event.request], Picos{});
        continue;
      }
      AllocationRequest request;
      request.bytes = at(event.request).bytes;
      request.before = event.request < before;
      if (!request.before) request.space = made.spaces[event.request - before];
      blocks[event.request] = pool.allocate(request).block;
    }
    return pool.statistics().all().reserved_bytes.peak;
  }

  [[nodiscard]] std::vector<std::int64_t> lay_out(const std::vector<LayoutBuffer>& lives) const {
    return solve_layout(aligned(lives), options_of(lives.size())).offsets;
  }
  [[nodiscard]] static std::vector<LayoutBuffer> aligned(std::vector<LayoutBuffer> lives) {
    for (LayoutBuffer& life : lives) life.alignment = step;
    return lives;
  }
  [[nodiscard]] LayoutOptions options_of(std::size_t buffers) const {
    LayoutOptions options;
    options.threads = options_.threads;
    options.effort = options_.effort > 0 ? options_.effort : 1'000'000 + 4 * static_cast<std::int64_t>(buffers);
    return options;
  }

  // False if the published planners look at more than `most_looks` places for it.
  bool stack_regions(StallocAlgorithm algorithm, std::int64_t most_looks) {
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
    return pack(initial, early, StallocAlgorithm::split_and_fuse, most_looks) &&
           pack(rest, held, algorithm, most_looks);
  }
  // From before the iterations: weights and gradients.
  [[nodiscard]] bool is_early(const Static& one) const {
    return profile_.iterations.empty() || one.request->lower < profile_.iterations.front();
  }
  bool pack(const std::vector<std::size_t>& members, std::int64_t base, StallocAlgorithm algorithm,
            std::int64_t most_looks) {
    std::vector<LayoutBuffer> lives;
    std::vector<PhasedRequest> phased;
    for (const std::size_t i : members) {
      const ProfiledRequest& request = *static_[i].request;
      lives.push_back(static_[i].life);
      phased.push_back({static_[i].life, request.phase_allocated, request.phase_freed});
    }
    const std::vector<std::int64_t> offsets = algorithm == StallocAlgorithm::group  ? group_by_phase(phased, most_looks)
                                              : algorithm == StallocAlgorithm::best ? lay_out(lives)
                                                                                    : layer_by_size(lives, most_looks);
    if (offsets.size() < members.size()) return false;
    for (std::size_t m = 0; m < members.size(); ++m) offsets_[members[m]] = base + offsets[m];
    return true;
  }

  // A pool of at least `room`.
  [[nodiscard]] StallocPlan finish(std::int64_t room) const {
    StallocPlan made = result_;
    std::vector<LaidBuffer> laid;
    for (std::size_t i = 0; i < static_.size(); ++i) {
      const LayoutBuffer& life = static_[i].life;
      laid.push_back({life.lower, life.upper, life.size, offsets_[i], step});
      (i < planned_ ? made.plan.places : made.plan.before).push_back({Bytes(offsets_[i]), Bytes(life.size)});
    }
    const LayoutVerdict verdict = check_layout(laid);
    SPILLWAY_ASSERT(verdict.legal() && verdict.height >= made.lower_bound.count());
    made.plan.pool = Bytes(std::max(verdict.height, room));
    ReusableSpaces spaces = reusable_spaces(profile_, laid, made.plan.pool);
    made.plan.spaces = std::move(spaces.spaces);
    made.spaces = std::move(spaces.of_request);
    for (std::size_t i = 0; i < made.spaces.size(); ++i)
      if (made.spaces[i] != RequestSpace::planned) made.plan.dynamic.push_back({i, made.spaces[i]});
    check_plan(made.plan, "");
    return made;
  }

  const MemoryProfile& profile_;
  const StallocOptions& options_;
  std::vector<Static> static_;        // in order of allocation, blocks from before behind
  std::size_t planned_ = 0;           // of static_, those that are requests
  std::vector<std::size_t> dynamic_;  // of the planned part
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
