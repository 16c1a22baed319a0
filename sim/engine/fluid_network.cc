#include "sim/engine/fluid_network.h"

#include <algorithm>
#include <limits>

#include "base/input_error.h"

namespace spillway::sim {

namespace {

// Amounts in 1/(1000 * 2^20) unit: what one Rate unit moves in one picosecond is 1.
constexpr std::int64_t amount_scale = std::int64_t{1000} << 20;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// now + ceil(remaining / rate), or the end of time.
Picos completion(Picos now, Wide remaining, std::int64_t rate) {
  if (rate <= 0) return Picos::max();
  if (remaining <= std::numeric_limits<std::int64_t>::max() - rate) {  // the common case: no 128-bit division
    const std::int64_t wait = (static_cast<std::int64_t>(remaining) + rate - 1) / rate;
    return wait < never - now.count() ? Picos(now.count() + wait) : Picos::max();
  }
  const Wide wait = (remaining + rate - 1) / rate;
  return wait < never - now.count() ? Picos(now.count() + static_cast<std::int64_t>(wait)) : Picos::max();
}

}  // namespace

LinkId FluidNetwork::add_link(Rate capacity) {
  SPILLWAY_ASSERT(capacity >= Rate{} && capacity <= max_capacity);
  Link link;
  link.capacity = capacity;
  link.next = link_count();
  links_.push_back(std::move(link));
  return LinkId{link_count() - 1};
}

PathId FluidNetwork::add_path(std::span<const PathEntry> entries) {
  const std::size_t first = path_entries_.size();
  for (const PathEntry& entry : entries) {
    SPILLWAY_ASSERT(index(entry.link) < link_count() && entry.usage >= 1 && entry.usage <= max_usage);
    auto same = std::find_if(path_entries_.begin() + static_cast<std::ptrdiff_t>(first), path_entries_.end(),
                             [&](const PathEntry& other) { return other.link == entry.link; });
    if (same == path_entries_.end()) {
      path_entries_.push_back(entry);
    } else {
      same->usage += entry.usage;
      SPILLWAY_ASSERT(same->usage <= max_usage);
    }
  }
  const std::size_t hops = path_entries_.size() - first;
  SPILLWAY_ASSERT(hops <= max_hops);
  path_first_.push_back(static_cast<std::uint32_t>(first));
  path_hops_.push_back(static_cast<std::uint32_t>(hops));
  return PathId{path_count() - 1};
}

std::span<const PathEntry> FluidNetwork::path(PathId path) const {
  return std::span(path_entries_).subspan(path_first_[index(path)], path_hops_[index(path)]);
}

void FluidNetwork::mark(std::uint32_t link, Change change) {
  Link& row = links_[link];
  if (row.change == Change::none) dirty_links_.push_back(link);
  row.change = std::max(row.change, change);
}

// Gives a flow that starts the rate of one like it that has just ended. Looks at the latest few.
bool FluidNetwork::take_vacancy(Flow& flow) {
  constexpr std::size_t looked_at = 8;
  const std::size_t count = vacancies_.size();
  for (std::size_t at = count; at > 0 && at + looked_at > count; --at) {
    Vacancy& vacancy = vacancies_[at - 1];
    // An empty path begins where the next one does.
    if (vacancy.first_hop != flow.first_hop || vacancy.hops != flow.hops) continue;
    if (vacancy.cap != flow.cap || vacancy.weight != flow.weight) continue;
    flow.next_rate = vacancy.rate;
    vacancy = vacancies_.back();
    vacancies_.pop_back();
    return true;
  }
  return false;
}

void FluidNetwork::close_vacancies() {
  for (const Vacancy& vacancy : vacancies_)
    for (std::uint32_t hop = 0; hop < vacancy.hops; ++hop)
      links_[index(path_entries_[vacancy.first_hop + hop].link)].change = Change::other;
  vacancies_.clear();
}

std::uint32_t FluidNetwork::start(Picos now, std::int64_t amount, PathId path, Rate cap, std::uint32_t weight,
                                  std::uint32_t owner) {
  SPILLWAY_ASSERT(amount > 0 && amount <= max_amount && weight >= 1 && weight <= max_weight);
  std::uint32_t slot = static_cast<std::uint32_t>(flows_.size());
  if (free_slots_.empty()) {
    flows_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Flow& flow = flows_[slot];
  flow = Flow{};
  flow.remaining = static_cast<Wide>(amount) * amount_scale;
  flow.cap = cap;
  flow.settled = now;
  flow.amount = amount;
  flow.weight = weight;
  flow.first_hop = path_first_[index(path)];
  flow.hops = path_hops_[index(path)];
  flow.owner = owner;
  flow.active = true;
  if (flow.hops == 0) pathless_.push_back(slot);
  const bool replaces = !vacancies_.empty() && take_vacancy(flow);
  if (replaces) {
    Link& first = links_[index(path_entries_[flow.first_hop].link)];
    ++first.newcomers;
    first.last_newcomer = slot;
  }
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    const PathEntry& entry = path_entries_[flow.first_hop + hop];
    Link& link = links_[index(entry.link)];
    flow.place[hop] = static_cast<std::uint32_t>(link.members.size());
    link.members.push_back(Member{slot, hop});
    link.weight_sum += std::int64_t{entry.usage} * weight;
    if (!replaces) mark(index(entry.link), Change::other);
  }
  return slot;
}

void FluidNetwork::finish(Picos now, std::uint32_t slot) {
  Flow& flow = flows_[slot];
  SPILLWAY_ASSERT(flow.active && now == flow.end);
  const Wide moved = static_cast<Wide>(flow.rate.count()) * (now - flow.settled).count();
  const Wide overshoot = moved - flow.remaining;
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    const PathEntry& entry = path_entries_[flow.first_hop + hop];
    Link& link = links_[index(entry.link)];
    link.carried += static_cast<Wide>(flow.amount) * entry.usage;
    link.overshoot += overshoot * entry.usage;
    link.weight_sum -= std::int64_t{entry.usage} * flow.weight;
    const Member last = link.members.back();
    link.members[flow.place[hop]] = last;
    flows_[last.slot].place[last.hop] = flow.place[hop];
    link.members.pop_back();
    mark(index(entry.link), Change::replaced);
  }
  if (flow.hops > 0) vacancies_.push_back(Vacancy{flow.cap, flow.rate.count(), flow.weight, flow.first_hop, flow.hops});
  flow.active = false;
  free_slots_.push_back(slot);
}

void FluidNetwork::set_capacity(LinkId link, Rate capacity) {
  SPILLWAY_ASSERT(capacity >= Rate{} && capacity <= max_capacity);
  if (links_[index(link)].capacity == capacity) return;
  links_[index(link)].capacity = capacity;
  mark(index(link), Change::other);
}

void FluidNetwork::solve(Picos now) {
  component_.clear();
  component_links_.clear();
  changed_.clear();
  earliest_.clear();
  ++solves_;
  if (solves_ == 0) {  // wrapped: forget all marks
    for (Link& link : links_) link.visited = 0;
    for (Flow& flow : flows_) flow.visited = 0;
    solves_ = 1;
  }
  close_vacancies();
  for (const std::uint32_t slot : pathless_) {
    flows_[slot].next_rate = flows_[slot].cap.count();
    component_.push_back(slot);
    apply_rates(component_.size() - 1, now);
  }
  for (const std::uint32_t seed : dirty_links_) {
    if (links_[seed].visited == solves_ || keep(seed, now)) continue;
    const std::size_t first_flow = component_.size(), first_link = component_links_.size();
    collect<false>(seed);
    fill(first_flow, first_link);
    apply_rates(first_flow, now);
    apply_use(first_link, now);
  }
  for (const std::uint32_t link : dirty_links_) {
    links_[link].change = Change::none;
    links_[link].newcomers = 0;
  }
  pathless_.clear();
  dirty_links_.clear();
}

// Where flows only replaced others, links stay joined and shared as they were. Only the order of ties among ends asks
// for a visit in the order in which solving goes.
bool FluidNetwork::keep(std::uint32_t seed, Picos now) {
  std::uint32_t newcomers = 0, last_newcomer = 0;
  std::uint32_t at = seed;
  do {
    const Link& link = links_[at];
    if (link.change == Change::other) return false;
    if (link.newcomers > 0) last_newcomer = link.last_newcomer;
    newcomers += link.newcomers;
    at = link.next;
  } while (at != seed);
  if (newcomers == 1 && keep_but_one(seed, last_newcomer, now)) return true;
  const std::size_t first_flow = component_.size();
  collect<true>(seed);
  apply_rates(first_flow, now);
  return true;
}

// False when several ends tie for the first; then nothing is done but the newcomer's rate.
bool FluidNetwork::keep_but_one(std::uint32_t seed, std::uint32_t newcomer, Picos now) {
  set_rate(newcomer, now);
  const std::size_t first_link = component_links_.size();
  Picos least = Picos::max();
  std::uint32_t first = 0;
  bool ties = false;
  std::uint32_t at = seed;
  do {
    Link& link = links_[at];
    link.visited = solves_;
    component_links_.push_back(at);
    for (const Member& member : link.members) {
      // Each flow once, where its path begins. Without branches: no processor foresees them.
      const Picos end = member.hop == 0 ? flows_[member.slot].end : Picos::max();
      const bool is_less = end < least;
      ties = !is_less && (ties || end == least);
      first = is_less ? member.slot : first;
      least = is_less ? end : least;
    }
    at = link.next;
  } while (at != seed);
  if (least == Picos::max()) return true;
  if (!ties) {
    earliest_.push_back(first);
    return true;
  }
  for (std::size_t i = first_link; i < component_links_.size(); ++i) links_[component_links_[i]].visited = 0;
  component_links_.resize(first_link);
  return false;
}

// Breadth-first over links and the flows that join them.
template <bool is_solved>
void FluidNetwork::collect(std::uint32_t seed) {
  any_capped_ = false;
  links_[seed].visited = solves_;
  const std::size_t first_link = component_links_.size();
  component_links_.push_back(seed);
  for (std::size_t at = first_link; at < component_links_.size(); ++at) {
    Link& link = links_[component_links_[at]];
    if constexpr (!is_solved) {
      link.free = link.capacity.count() << 16;
      link.open_weight = link.weight_sum;
      link.level = link.open_weight > 0 ? link.free / link.open_weight : never;
    }
    for (const Member& member : link.members) {
      Flow& flow = flows_[member.slot];
      if (flow.visited == solves_) continue;
      flow.visited = solves_;
      if constexpr (!is_solved) {
        flow.next_rate = -1;
        any_capped_ = any_capped_ || flow.cap != unlimited_rate;
      }
      component_.push_back(member.slot);
      for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
        const std::uint32_t other = index(path_entries_[flow.first_hop + hop].link);
        if (links_[other].visited == solves_) continue;
        links_[other].visited = solves_;
        component_links_.push_back(other);
      }
    }
  }
  std::uint32_t next = seed;
  for (std::size_t at = component_links_.size(); at > first_link; --at) {
    links_[component_links_[at - 1]].next = next;
    next = component_links_[at - 1];
  }
}

void FluidNetwork::fix(Flow& flow, std::int64_t rate) {
  flow.next_rate = rate;
  for (std::uint32_t hop = 0; hop < flow.hops; ++hop) {
    const PathEntry& entry = path_entries_[flow.first_hop + hop];
    Link& link = links_[index(entry.link)];
    link.free -= rate * entry.usage;
    link.open_weight -= std::int64_t{entry.usage} * flow.weight;
    link.level = -1;  // to be found again
  }
}

bool FluidNetwork::fix_capped(std::size_t first_flow, std::int64_t level) {
  bool any = false;
  for (std::size_t at = first_flow; at < component_.size(); ++at) {
    Flow& flow = flows_[component_[at]];
    if (flow.next_rate >= 0 || static_cast<Wide>(level) * flow.weight < flow.cap.count()) continue;
    fix(flow, flow.cap.count());
    any = true;
  }
  return any;
}

// Progressive filling of one component. Ties between links go to the lower index.
void FluidNetwork::fill(std::size_t first_flow, std::size_t first_link) {
  for (;;) {
    std::int64_t level = never;
    std::uint32_t least = 0;
    for (std::size_t at = first_link; at < component_links_.size(); ++at) {
      Link& link = links_[component_links_[at]];
      if (link.level < 0) link.level = link.open_weight > 0 ? link.free / link.open_weight : never;
      if (link.level < level || (link.level == level && level != never && component_links_[at] < least)) {
        level = link.level;
        least = component_links_[at];
      }
    }
    if (level == never) return;
    if (any_capped_ && fix_capped(first_flow, level)) continue;
    for (const Member& member : links_[least].members) {
      Flow& flow = flows_[member.slot];
      if (flow.next_rate < 0) fix(flow, level * flow.weight);
    }
  }
}

// Takes over the solved rates and finds what completes first.
void FluidNetwork::apply_rates(std::size_t first_flow, Picos now) {
  Picos least = Picos::max();
  const std::size_t first_earliest = earliest_.size();
  for (std::size_t at = first_flow; at < component_.size(); ++at) {
    const std::uint32_t slot = component_[at];
    if (flows_[slot].next_rate != flows_[slot].rate.count()) set_rate(slot, now);
    const Picos end = flows_[slot].end;
    if (end > least || end == Picos::max()) continue;
    if (end < least) earliest_.resize(first_earliest);
    least = end;
    earliest_.push_back(slot);
  }
}

void FluidNetwork::apply_use(std::size_t first_link, Picos now) {
  for (std::size_t at = first_link; at < component_links_.size(); ++at) {
    Link& link = links_[component_links_[at]];
    SPILLWAY_ASSERT(link.free >= 0);
    account(link, (link.capacity.count() << 16) - link.free, now);
  }
}

void FluidNetwork::set_rate(std::uint32_t slot, Picos now) {
  Flow& flow = flows_[slot];
  flow.remaining -= static_cast<Wide>(flow.rate.count()) * (now - flow.settled).count();
  SPILLWAY_ASSERT(flow.remaining > 0);
  flow.settled = now;
  flow.rate = Rate(flow.next_rate);
  flow.end = completion(now, flow.remaining, flow.next_rate);
  changed_.push_back(slot);
}

void FluidNetwork::account(Link& link, std::int64_t used, Picos now) {
  if (link.used == used) return;
  const Picos span = now - link.changed;
  link.integral += static_cast<Wide>(link.used) * span.count();
  if (link.used > 0) link.busy += span;
  link.used = used;
  link.changed = now;
}

FluidNetwork::LinkTotals FluidNetwork::totals(LinkId id, Picos now) const {
  const Link& link = links_[index(id)];
  LinkTotals totals;
  totals.units = static_cast<std::int64_t>(link.carried >> 16);
  totals.busy = link.busy + (link.used > 0 ? now - link.changed : Picos{});
  totals.consumption = Rate((link.used + full_usage - 1) / full_usage);
  return totals;
}

std::int64_t FluidNetwork::moved(std::uint32_t slot, Picos now) const {
  const Flow& flow = flows_[slot];
  const Wide left = flow.remaining - static_cast<Wide>(flow.rate.count()) * (now - flow.settled).count();
  return static_cast<std::int64_t>((static_cast<Wide>(flow.amount) * amount_scale - left) / amount_scale);
}

bool FluidNetwork::conserves(Picos now) const {
  for (const Link& link : links_) {
    Wide in = link.integral + static_cast<Wide>(link.used) * (now - link.changed).count();
    in -= link.overshoot + link.carried * amount_scale;
    std::int64_t used = 0;
    for (const Member& member : link.members) {
      const Flow& flow = flows_[member.slot];
      const std::int64_t usage = path_entries_[flow.first_hop + member.hop].usage;
      const Wide left = flow.remaining - static_cast<Wide>(flow.rate.count()) * (now - flow.settled).count();
      in -= (static_cast<Wide>(flow.amount) * amount_scale - left) * usage;
      used += flow.rate.count() * usage;
    }
    if (in != 0) return false;
    if (!dirty() && (used != link.used || used > (link.capacity.count() << 16))) return false;
  }
  return true;
}

}  // namespace spillway::sim
