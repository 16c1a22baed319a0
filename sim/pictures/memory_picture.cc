#include "sim/pictures/memory_picture.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "base/address_map.h"
#include "base/stop.h"

namespace spillway::sim {
namespace {

constexpr std::string_view held_before = "held before";

// Where an event lies on the axis; never before the one ahead of it.
class Axis {
 public:
  Axis(const Trace& trace, const AllocationStreamResult& run) : at_(trace.memory_events.size(), 0) {
    timed_ = std::all_of(run.held.begin(), run.held.end(),
                         [&](const HeldMemory& held) { return trace.memory_events[held.event].time != unknown_time; });
    std::int64_t reached = timed_ && !run.held.empty() ? trace.memory_events[run.held.front().event].time.count() : 0;
    std::int64_t count = 0;
    for (const HeldMemory& held : run.held)
      at_[held.event] = reached = timed_ ? std::max(reached, trace.memory_events[held.event].time.count()) : count++;
  }
  Axis(std::span<const std::int64_t> places, bool timed) : at_(places.begin(), places.end()), timed_(timed) {}
  [[nodiscard]] bool timed() const { return timed_; }
  [[nodiscard]] std::int64_t of(std::uint32_t event) const { return at_[event]; }

 private:
  std::vector<std::int64_t> at_;
  bool timed_ = false;
};

// What blocks are, numbered as they are met: in the caller's words, else by their tensor's role, else by the phase that
// they are allocated in.
class Kinds {
 public:
  explicit Kinds(const Trace& trace, const OwnerOf& owner) : trace_(trace), owner_(owner) {
    by_role_.fill(none);
    by_phase_.fill(none);
  }
  // Of what the memory event allocates; no_tag: held before.
  std::size_t of(std::uint32_t tag) {
    if (tag == no_tag) return numbered(held_before_, [] { return std::string(held_before); });
    if (owner_) {
      std::string name = owner_(tag);
      const auto [found, is_first] = by_name_.try_emplace(name, none);
      return numbered(found->second, [&name] { return std::move(name); });
    }
    const MemoryEvent& event = trace_.memory_events[tag];
    const TensorRole role =
        event.tensor == TensorId::none ? TensorRole::unknown : trace_.tensors.role[index_of(event.tensor)];
    if (role != TensorRole::unknown)
      return numbered(by_role_[static_cast<std::size_t>(role)], [role] { return std::string(to_string(role)); });
    const Phase phase = event.anchor == OpId::none ? Phase::unknown : trace_.ops.phase[index_of(event.anchor)];
    return numbered(by_phase_[static_cast<std::size_t>(phase)], [phase] {
      return phase == Phase::unknown ? "allocated" : "allocated in " + std::string(to_string(phase));
    });
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  template <class Name>
  std::size_t numbered(std::size_t& kind, const Name& name) {
    if (kind != none) return kind;
    kind = names_.size();
    names_.push_back(name());
    return kind;
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  const Trace& trace_;
  const OwnerOf& owner_;
  std::map<std::string, std::size_t> by_name_;
  std::size_t held_before_ = none;
  std::array<std::size_t, static_cast<std::size_t>(TensorRole::input) + 1> by_role_{};
  std::array<std::size_t, phase_count> by_phase_{};
  std::vector<std::string> names_;
};

// The event that frees each row's block: the first behind its allocation at the address its event names.
class Frees {
 public:
  Frees(const Trace& trace, const AllocationStreamResult& run) : freed_(trace.memory_events.size(), never) {
    for (const HeldMemory& held : run.held) {
      check_stop();
      const MemoryEvent& event = trace.memory_events[held.event];
      if (event.action == MemoryAction::allocate)
        last_[event.address.count()] = held.event;
      else if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed)
        free(event.address.count(), held.event);
    }
  }
  // none: never.
  [[nodiscard]] std::optional<std::uint32_t> of(std::uint32_t allocation) const {
    return freed_[allocation] == never ? std::nullopt : std::optional(freed_[allocation]);
  }

 private:
  void free(std::uint64_t address, std::uint32_t event) {
    const std::uint32_t* const found = last_.find(address);
    if (found == nullptr) return;
    freed_[*found] = event;
    last_.erase(address);
  }
  static constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
  AddressMap<std::uint32_t> last_;    // allocation by address
  std::vector<std::uint32_t> freed_;  // by allocation
};

void sort_kinds(MemoryPicture& picture, const std::vector<std::string>& names) {
  std::vector<double> area(names.size(), 0);
  for (const MemoryPicture::Block& block : picture.blocks)
    area[block.kind] += static_cast<double>(block.size.count()) * static_cast<double>(block.end - block.begin);
  std::vector<std::size_t> order(names.size()), place(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::tie(area[b], names[a]) < std::tie(area[a], names[b]); });
  for (const std::size_t kind : order) {
    place[kind] = picture.kinds.size();
    picture.kinds.push_back(names[kind]);
  }
  for (MemoryPicture::Block& block : picture.blocks) block.kind = place[block.kind];
  for (MemoryPicture::Change& change : picture.changes) change.kind = place[change.kind];
}

// Who holds what, event by event. Tensors from before the first op have parts of what was held then. A record without
// addresses doesn't say what a free gives back: nobody is known to hold any of it.
class Holders {
 public:
  Holders(const Trace& trace, const AllocationStreamResult& run, const Axis& axis, Kinds& kinds, MemoryPicture& picture)
      : trace_(trace), axis_(axis), kinds_(kinds), picture_(picture), rest_(kind_of(no_tag)) {
    std::int64_t allocated = run.initial.allocated.count();
    change(picture.begin, rest_, allocated);
    bool is_initial = run.started_up;
    for (const HeldMemory& held : run.held) {
      check_stop();
      is_initial = is_initial && trace.memory_events[held.event].anchor == OpId::none;
      const std::int64_t more = held.allocated.count() - allocated;
      allocated = held.allocated.count();
      if (trace.memory_events[held.event].action == MemoryAction::allocate)
        allocate(held.event, more, is_initial);
      else if (more != 0)
        free(held.event, more);
    }
  }

 private:
  struct Live {
    std::size_t kind = 0;
    std::int64_t bytes = 0;
  };

  std::size_t kind_of(std::uint32_t tag) {
    const std::size_t kind = kinds_.of(tag);
    held_.resize(std::max(held_.size(), kind + 1), 0);
    return kind;
  }

  void change(std::int64_t at, std::size_t kind, std::int64_t bytes) {
    if (bytes == 0) return;
    held_[kind] += bytes;
    picture_.changes.push_back({at, kind, bytes});
  }

  void allocate(std::uint32_t e, std::int64_t more, bool is_initial) {
    const MemoryEvent& event = trace_.memory_events[e];
    const std::int64_t at = axis_.of(e);
    if (event.address == Addr(0)) return change(at, rest_, more);
    const std::size_t kind = kind_of(e);
    const std::int64_t part = is_initial && more == 0 ? std::min(event.bytes.count(), held_[rest_]) : 0;
    change(at, rest_, -part);
    change(at, kind, more + part);
    live_[event.address.count()] = {kind, more + part};
  }

  // What its block doesn't account for comes from what nobody is known to hold, then from whoever holds most.
  void free(std::uint32_t e, std::int64_t more) {
    const std::int64_t at = axis_.of(e);
    std::int64_t left = -more;
    const auto take = [&](std::size_t kind, std::int64_t most) {
      const std::int64_t bytes =
          std::clamp<std::int64_t>(std::min(most, held_[kind]), 0, std::max<std::int64_t>(left, 0));
      change(at, kind, -bytes);
      left -= bytes;
    };
    const std::uint64_t address = trace_.memory_events[e].address.count();
    if (const Live* const block = live_.find(address)) {
      take(block->kind, block->bytes);
      live_.erase(address);
    }
    take(rest_, left);
    while (left > 0) {
      const auto most = std::max_element(held_.begin(), held_.end());
      if (*most <= 0) break;
      take(static_cast<std::size_t>(most - held_.begin()), left);
    }
    change(at, rest_, -left);  // a free that takes, of an allocator that moves blocks; or nothing
  }

  const Trace& trace_;
  const Axis& axis_;
  Kinds& kinds_;
  MemoryPicture& picture_;
  std::vector<std::int64_t> held_;  // by kind
  AddressMap<Live> live_;
  std::size_t rest_;
};

// By place in run.held: the latest time of an event so far; events without one stand at their number.
std::vector<Picos> times_reached(const Trace& trace, const AllocationStreamResult& run) {
  std::vector<Picos> reached;
  reached.reserve(run.held.size());
  for (const HeldMemory& held : run.held) {
    const Picos time = trace.memory_events[held.event].time;
    const Picos own = time == unknown_time ? Picos(static_cast<std::int64_t>(held.event)) : time;
    reached.push_back(reached.empty() ? own : std::max(reached.back(), own));
  }
  return reached;
}

MemoryPicture picture_on(const Trace& trace, const AllocationStreamResult& run, const Axis& axis, bool with_changes,
                         const OwnerOf& owner = {}) {
  MemoryPicture picture;
  picture.timed = axis.timed();
  picture.begin = run.held.empty() ? 0 : axis.of(run.held.front().event);
  picture.end = run.held.empty() ? 1 : std::max(axis.of(run.held.back().event), picture.begin) + 1;
  picture.curve.reserve(run.held.size() + 1);
  picture.curve.push_back({picture.begin, run.initial.allocated, run.initial.reserved});
  for (const HeldMemory& held : run.held)
    picture.curve.push_back({axis.of(held.event), held.allocated, held.reserved, held.event});
  const Frees frees(trace, run);
  Kinds kinds(trace, owner);
  picture.blocks.reserve(run.rows.size());
  std::vector<Picos> reached;
  for (const AllocationRow& row : run.rows) {
    check_stop();
    if (row.size <= Bytes(0)) continue;
    MemoryPicture::Block block{picture.begin, picture.end, row.address.count(), row.size, 0};
    if (row.tag != no_tag) {
      block.event = row.tag;
      block.begin = axis.of(row.tag);
      if (const auto freed = frees.of(row.tag)) {
        block.end = std::max(axis.of(*freed), block.begin);
        block.freed = *freed;
      }
    } else if (row.freed != unknown_time) {
      // Rows carry the times of events; a block from before the record has no event of its own to go by.
      if (reached.empty()) reached = times_reached(trace, run);
      const auto after = std::lower_bound(reached.begin(), reached.end(), row.freed);
      if (after != reached.end()) {
        const std::uint32_t event = run.held[static_cast<std::size_t>(after - reached.begin())].event;
        block.end = axis.of(event);
        block.freed = event;
      }
    }
    block.kind = kinds.of(row.tag);
    picture.blocks.push_back(block);
  }
  std::stable_sort(picture.blocks.begin(), picture.blocks.end(),
                   [](const MemoryPicture::Block& a, const MemoryPicture::Block& b) { return a.address < b.address; });
  if (with_changes) Holders(trace, run, axis, kinds, picture);
  sort_kinds(picture, kinds.names());
  return picture;
}

}  // namespace

MemoryPicture memory_picture(const Trace& trace, const AllocationStreamResult& run) {
  return picture_on(trace, run, Axis(trace, run), false);
}

MemoryPicture memory_picture_on(const Trace& trace, const AllocationStreamResult& run,
                                std::span<const std::int64_t> places, bool timed, std::int64_t end,
                                const OwnerOf& owner) {
  if (places.empty()) return picture_on(trace, run, Axis(trace, run), true, owner);
  MemoryPicture picture = picture_on(trace, run, Axis(places, timed), true, owner);
  picture.begin = std::min<std::int64_t>(picture.begin, 0);
  picture.curve.front().at = picture.begin;
  picture.end = std::max({picture.begin + 1, picture.end - 1, end});
  if (run.initial.allocated > Bytes(0)) picture.changes.front().at = picture.begin;
  for (MemoryPicture::Block& block : picture.blocks) {
    if (block.event < 0) block.begin = picture.begin;
    if (block.freed < 0) block.end = picture.end;
  }
  return picture;
}

std::vector<std::int64_t> owners_at_peak(const MemoryPicture& picture) {
  std::vector<std::int64_t> held(picture.kinds.size(), 0), at_peak = held;
  std::int64_t total = 0, peak = 0;
  for (const MemoryPicture::Change& change : picture.changes) {
    held[change.kind] += change.bytes;
    total += change.bytes;
    if (total <= peak) continue;
    peak = total;
    at_peak = held;
  }
  return at_peak;
}

}  // namespace spillway::sim
