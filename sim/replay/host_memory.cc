#include "sim/replay/host_memory.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace spillway::sim {
namespace {

struct Change {
  Picos time{};
  std::int64_t bytes = 0;  // taken, or given back when negative
};

class HostHoldings {
 public:
  HostHoldings(const Trace& trace, std::span<const Picos> op_start, std::span<const Picos> op_end)
      : trace_(trace), op_start_(op_start), op_end_(op_end), changes_(std::max<std::size_t>(1, trace.rank_count)) {}

  void add_events(std::span<const Picos> event_time) {
    for (std::size_t e = 0; e < trace_.memory_events.size(); ++e) {
      const MemoryEvent& event = trace_.memory_events[e];
      if (event.device >= 0) continue;
      const std::size_t rank = event.stream == LaneId::none ? 0 : trace_.lanes[index_of(event.stream)].rank;
      if (event.action == MemoryAction::allocate) add(rank, event_time[e], event.bytes.count());
      if (event.action == MemoryAction::free_requested) add(rank, event_time[e], -event.bytes.count());
    }
  }

  // From the start of its store to the end of its load, or until it is forwarded. whole: of a folded step; else null.
  // False where it isn't regular.
  [[nodiscard]] bool add_absences(const PlannedTrace& planned, const PeriodicRun* whole) {
    std::vector<std::int64_t> more(changes_.size(), 0);  // that the periods put in leave there, by rank
    const auto count = [&](OpId copy, std::int64_t bytes) {
      if (whole != nullptr) more[rank_of(copy)] += bytes * (whole->runs_of(copy) - 1);
    };
    std::map<std::uint32_t, bool> whole_step;  // by storage: counted already
    for (std::size_t k = 0; k < planned.fetch.size(); ++k)
      if (planned.transfer[k] == OpId::none && is_host_copy(planned.fetch[k])) {
        const auto [at, is_new] = whole_step.emplace(storage_of(planned.fetch[k]), true);
        const std::int64_t runs = whole != nullptr ? whole->runs_of(planned.fetch[k]) : 1;
        if (is_new) add(rank_of(planned.fetch[k]), Picos(0), bytes_of(planned.fetch[k]) * runs);
      }
    for (std::size_t k = 0; k < planned.transfer.size(); ++k) {
      const OpId store = planned.transfer[k];
      if (!is_host_copy(store) || whole_step.contains(storage_of(store))) continue;
      add(rank_of(store), op_start_[index_of(store)], bytes_of(store));
      count(store, bytes_of(store));
      const OpId load = planned.fetch[k], asked = planned.asked[k];
      if (load == OpId::none && asked == OpId::none) continue;
      // Forwarded: the copy has no reader, and goes when it is whole and asked for.
      const OpId last = load == OpId::none ? store : load;
      Picos until = op_end_[index_of(last)];
      if (load == OpId::none) until = std::max(until, op_end_[index_of(asked)]);
      add(rank_of(store), until, -bytes_of(store));
      count(last, -bytes_of(store));
    }
    return whole == nullptr || add_periods(*whole, more);
  }

  [[nodiscard]] Bytes peak(const RankPlaces& places) const {
    std::int64_t most = 0;
    for (const std::int64_t machine : places.kinds()) {
      std::vector<Change> changes;
      for (const RankShare& share : places.on(machine))
        for (const Change& one : changes_[share.rank]) changes.push_back({one.time, one.bytes * share.gpus});
      std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return std::pair(a.time, a.bytes) < std::pair(b.time, b.bytes);
      });
      std::int64_t held = 0;
      for (const Change& change : changes) most = std::max(most, held += change.bytes);
    }
    return Bytes(most);
  }

 private:
  // The periods put in hold what the last one shown does, and what those before them left. At a time when all ranks
  // are regular.
  [[nodiscard]] bool add_periods(const PeriodicRun& whole, const std::vector<std::int64_t>& more) {
    PeriodicRun::Times times;
    for (std::size_t r = 0; r < more.size(); ++r) {
      const std::optional<PeriodicRun::Times> of_rank = whole.usual_times(r, op_start_, op_end_);
      if (!of_rank) return false;
      times = {std::max(times.earliest, of_rank->earliest), std::min(times.latest, of_rank->latest)};
    }
    if (times.earliest > times.latest) return false;
    for (std::size_t r = 0; r < more.size(); ++r)
      if (more[r] != 0) add(r, more[r] > 0 ? times.latest - whole.period() : times.latest, more[r]);
    return true;
  }

  void add(std::size_t rank, Picos time, std::int64_t bytes) {
    changes_[std::min(rank, changes_.size() - 1)].push_back({time, bytes});
  }
  [[nodiscard]] bool is_host_copy(OpId op) const { return op != OpId::none && is_copy(trace_.ops.kind[index_of(op)]); }
  [[nodiscard]] std::int64_t bytes_of(OpId op) const { return trace_.ops.bytes[index_of(op)].count(); }
  [[nodiscard]] std::size_t rank_of(OpId op) const {
    return trace_.lanes[index_of(trace_.ops.lane[index_of(op)])].rank;
  }
  [[nodiscard]] std::uint32_t storage_of(OpId op) const {
    const auto use = std::lower_bound(trace_.uses.begin(), trace_.uses.end(), op,
                                      [](const Use& u, OpId wanted) { return u.op < wanted; });
    return trace_.tensors.storage[index_of(use->tensor)];
  }

  const Trace& trace_;
  std::span<const Picos> op_start_, op_end_;
  std::vector<std::vector<Change>> changes_;  // by rank
};

}  // namespace

std::optional<HostMemoryResult> host_memory(const Trace& trace, const PlannedTrace* planned,
                                            std::span<const Picos> event_time, std::span<const Picos> op_start,
                                            std::span<const Picos> op_end, const PeriodicRun* whole,
                                            const HostProfile& host, const RankPlaces& places) {
  HostMemoryResult result;
  const bool moves = planned != nullptr && !planned->lanes.empty();
  if (!moves && transfer_lanes(trace).empty()) return result;
  HostHoldings holdings(trace, op_start, op_end);
  holdings.add_events(event_time);
  if (moves && !holdings.add_absences(*planned, whole)) return std::nullopt;
  result.known = true;
  result.peak = holdings.peak(places);
  result.capacity = host.dram.value;
  return result;
}

}  // namespace spillway::sim
