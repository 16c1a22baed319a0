#include "sim/replay/plan_check.h"

#include <algorithm>
#include <map>
#include <vector>

#include "traces/host_order.h"

namespace spillway::sim {
namespace {

std::string described(const Trace& trace, OpId op) {
  return "op " + std::to_string(index_of(op)) + " '" + std::string(trace.strings.text(trace.ops.name[index_of(op)])) +
         "'";
}

std::vector<std::size_t> positions(const Trace& trace) {
  const std::vector<OpId> order = host_order(trace);
  std::vector<std::size_t> position(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) position[index_of(order[p])] = p;
  return position;
}

// Who wrote what before: by storage the writers in order, and for each use that reads, how many came before it.
struct History {
  std::vector<std::vector<OpId>> writers;
  std::vector<std::size_t> seen;  // by use
};

History history_of(const Trace& trace) {
  History history;
  std::vector<std::vector<std::size_t>> uses(trace.ops.size());
  for (std::size_t u = 0; u < trace.uses.size(); ++u) uses[index_of(trace.uses[u].op)].push_back(u);
  for (const std::uint32_t storage : trace.tensors.storage)
    history.writers.resize(std::max<std::size_t>(history.writers.size(), storage + 1));
  history.seen.resize(trace.uses.size());
  for (const OpId op : host_order(trace)) {
    for (const std::size_t u : uses[index_of(op)])
      history.seen[u] = history.writers[trace.tensors.storage[index_of(trace.uses[u].tensor)]].size();
    for (const std::size_t u : uses[index_of(op)]) {
      if (trace.uses[u].access != Access::write) continue;
      std::vector<OpId>& writers = history.writers[trace.tensors.storage[index_of(trace.uses[u].tensor)]];
      if (writers.empty() || writers.back() != op) writers.push_back(op);
    }
  }
  return history;
}

class Comparison {
 public:
  Comparison(const Trace& before, const Trace& after, std::span<const OpId> moved)
      : before_(before), after_(after), moved_(moved) {}

  std::string fault() {
    if (std::string fault = compare_ops(); !fault.empty()) return fault;
    old_position_ = positions(before_);
    new_position_ = positions(after_);
    for (const auto check : {&Comparison::check_launches, &Comparison::compare_histories, &Comparison::check_edges,
                             &Comparison::check_waits, &Comparison::check_residence, &Comparison::check_ranks})
      if (std::string fault = (this->*check)(); !fault.empty()) return fault;
    return "";
  }

 private:
  [[nodiscard]] OpId now(OpId op) const { return op == OpId::none ? op : moved_[index_of(op)]; }
  [[nodiscard]] std::size_t was_at(std::size_t op) const { return old_position_[op]; }
  [[nodiscard]] std::size_t is_at(std::size_t op) const { return new_position_[index_of(moved_[op])]; }

  [[nodiscard]] std::string compare_ops() {
    const Ops &a = before_.ops, &b = after_.ops;
    if (a.size() != b.size() || moved_.size() != a.size()) return "some ops are missing or new";
    std::vector<bool> met(a.size(), false);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t j = index_of(moved_[i]);
      if (j >= met.size() || met[j]) return described(before_, OpId(static_cast<std::uint32_t>(i))) + " is lost";
      met[j] = true;
      const bool same = a.kind[i] == b.kind[j] && a.lane[i] == b.lane[j] && a.duration[i] == b.duration[j] &&
                        a.flags[i] == b.flags[j] && a.bytes[i] == b.bytes[j] &&
                        now(a.launched_by[i]) == b.launched_by[j] &&
                        before_.strings.text(a.name[i]) == after_.strings.text(b.name[j]);
      if (!same) return described(before_, OpId(static_cast<std::uint32_t>(i))) + " is another op now";
    }
    return "";
  }

  // A lane's ops run in the order of their columns: that must be the order they are issued in.
  [[nodiscard]] std::string check_launches() {
    std::vector<std::size_t> last(after_.lanes.size(), 0);
    for (std::size_t j = 0; j < after_.ops.size(); ++j) {
      std::size_t& before = last[index_of(after_.ops.lane[j])];
      if (after_.ops.launched_by[j] != OpId::none && new_position_[j] + 1 <= before)
        return described(after_, OpId(static_cast<std::uint32_t>(j))) + " runs in another order than it is launched";
      if (after_.ops.launched_by[j] != OpId::none) before = new_position_[j] + 1;
      const OpId by = after_.ops.launched_by[j];
      if (by != OpId::none && new_position_[index_of(by)] > new_position_[j])
        return described(after_, OpId(static_cast<std::uint32_t>(j))) + " runs before its launch";
    }
    return "";
  }

  [[nodiscard]] std::string compare_histories() {
    const History old_history = history_of(before_), new_history = history_of(after_);
    for (std::size_t s = 0; s < old_history.writers.size(); ++s) {
      if (s >= new_history.writers.size() || old_history.writers[s].size() != new_history.writers[s].size())
        return "storage " + std::to_string(s) + " is written less or more often";
      for (std::size_t w = 0; w < old_history.writers[s].size(); ++w)
        if (now(old_history.writers[s][w]) != new_history.writers[s][w])
          return described(before_, old_history.writers[s][w]) + " writes to storage " + std::to_string(s) +
                 " out of turn";
    }
    std::map<std::pair<OpId, TensorId>, std::size_t> seen;
    for (std::size_t u = 0; u < after_.uses.size(); ++u)
      seen[{after_.uses[u].op, after_.uses[u].tensor}] = new_history.seen[u];
    for (std::size_t u = 0; u < before_.uses.size(); ++u) {
      const Use& use = before_.uses[u];
      const auto found = seen.find({now(use.op), use.tensor});
      if (found == seen.end()) return described(before_, use.op) + " has lost a tensor";
      if (use.access == Access::read && found->second != old_history.seen[u])
        return described(before_, use.op) + " reads '" +
               std::string(before_.strings.text(before_.tensors.name[index_of(use.tensor)])) + "' " +
               (found->second < old_history.seen[u] ? "before it is written" : "after it is overwritten");
    }
    return "";
  }

  // In both, as lanes stay.
  [[nodiscard]] std::size_t rank_of(std::size_t i) const { return before_.lanes[index_of(before_.ops.lane[i])].rank; }

  [[nodiscard]] std::string check_edges() {
    for (const Edge& edge : before_.edges) {
      const std::size_t from = index_of(edge.from), to = index_of(edge.to);
      if (rank_of(from) == rank_of(to) && was_at(from) < was_at(to) && is_at(from) > is_at(to))
        return described(before_, edge.to) + " is issued before " + described(before_, edge.from) +
               ", which it waits for";
    }
    return "";
  }

  // Whose works a call waits for (or, marking them, has others wait for): all lanes, or one.
  struct Scope {
    bool any = false, whole_device = false;
    LaneId lane = LaneId::none;
  };
  [[nodiscard]] Scope scope_before(std::size_t i) const {
    const OpKind kind = before_.ops.kind[i];
    const Sync* sync = before_.sync_of(OpId(static_cast<std::uint32_t>(i)));
    const LaneId lane = sync == nullptr ? LaneId::none : sync->lane;
    if (kind == OpKind::event_record) return {lane != LaneId::none, false, lane};
    if (kind == OpKind::stream_sync) return {true, lane == LaneId::none, lane};
    if (kind == OpKind::device_sync || kind == OpKind::device_free || kind == OpKind::event_sync)
      return {true, true, LaneId::none};
    return {};
  }

  [[nodiscard]] std::string check_waits() {
    const std::vector<OpId> order = host_order(before_);
    // The latest work of each lane, and of all, in the new order, while walking the old one.
    std::vector<std::size_t> latest(before_.lanes.size(), 0);
    std::map<std::size_t, std::size_t> latest_of_rank;
    std::vector<std::size_t> released(before_.lanes.size(), 0);  // works of the lane may not be issued earlier
    for (const OpId op : order) {
      const std::size_t i = index_of(op), lane = index_of(before_.ops.lane[i]);
      std::size_t& latest_of_all = latest_of_rank[rank_of(i)];
      if (!is_host_call(before_.ops.kind[i])) {
        if (is_at(i) + 1 < released[lane]) return described(before_, op) + " is issued before a wait it stood behind";
        latest[lane] = std::max(latest[lane], is_at(i) + 1);
        latest_of_all = std::max(latest_of_all, is_at(i) + 1);
        if (waits_for_copy_of(i)) hold_all(rank_of(i), is_at(i) + 1, released);
        continue;
      }
      const Scope scope = scope_before(i);
      if (scope.any && (scope.whole_device ? latest_of_all : latest[index_of(scope.lane)]) > is_at(i) + 1)
        return described(before_, op) + " is issued before works that it waits for";
      if (before_.ops.kind[i] == OpKind::stream_wait) {
        const Sync* sync = before_.sync_of(op);
        if (sync == nullptr || sync->lane == LaneId::none) continue;
        if (sync->event != OpId::none && is_at(index_of(sync->event)) > is_at(i))
          return described(before_, op) + " is issued before the event it waits for";
        released[index_of(sync->lane)] = std::max(released[index_of(sync->lane)], is_at(i) + 1);
      } else if (scope.any && before_.ops.kind[i] != OpKind::event_record) {
        hold_all(rank_of(i), is_at(i) + 1, released);
      }
    }
    return "";
  }
  void hold_all(std::size_t rank, std::size_t position, std::vector<std::size_t>& released) const {
    for (std::size_t lane = 0; lane < released.size(); ++lane)
      if (before_.lanes[lane].rank == rank) released[lane] = std::max(released[lane], position);
  }
  [[nodiscard]] bool waits_for_copy_of(std::size_t work) const {
    const OpId by = before_.ops.launched_by[work];
    return by != OpId::none &&
           waits_for_copy(before_.ops.flags[index_of(by)], before_.ops.kind[work], before_.ops.flags[work]);
  }

  [[nodiscard]] std::string check_residence() {
    constexpr std::size_t never = static_cast<std::size_t>(-1);
    struct Stay {
      std::size_t from = never, to = never;  // uses at positions in [from, to) find it
    };
    std::map<std::uint32_t, Stay> stays;
    std::map<std::int16_t, std::size_t> reached_on;  // by device
    for (const MemoryEvent& event : after_.memory_events) {
      std::size_t& reached = reached_on[event.device];
      if (event.anchor != OpId::none) reached = std::max(reached, issue_of(event.anchor) + 1);
      if (event.tensor == TensorId::none) continue;
      Stay& stay = stays[after_.tensors.storage[index_of(event.tensor)]];
      if (event.action == MemoryAction::allocate) {
        if (stay.from != never)
          return "storage " + std::to_string(after_.tensors.storage[index_of(event.tensor)]) + " is allocated twice";
        stay.from = reached;
      }
      if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed)
        stay.to = std::min(stay.to, reached);
    }
    for (const Use& use : after_.uses) {
      const auto found = stays.find(after_.tensors.storage[index_of(use.tensor)]);
      if (found == stays.end()) continue;
      const std::size_t at = issue_of(use.op);
      if (found->second.from == never || at < found->second.from || at >= found->second.to)
        return described(after_, use.op) + " uses '" +
               std::string(after_.strings.text(after_.tensors.name[index_of(use.tensor)])) +
               "' while it is not in memory";
    }
    return "";
  }
  [[nodiscard]] std::string check_ranks() {
    if (before_.rank_count <= 1) return "";
    std::map<std::size_t, std::size_t> last;  // by rank: new position of its collective before
    for (const OpId op : host_order(before_)) {
      if (before_.ops.kind[index_of(op)] != OpKind::collective) continue;
      const auto [found, first] = last.try_emplace(rank_of(index_of(op)), is_at(index_of(op)));
      if (!first && found->second > is_at(index_of(op)))
        return described(before_, op) + " changes places with another collective of its rank";
      found->second = is_at(index_of(op));
    }
    return circle();
  }

  // An op that waits for itself: by its lane, its launch and the trace's edges, all ranks together.
  [[nodiscard]] std::string circle() const {
    const std::size_t n = after_.ops.size();
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waits;
    const auto wait = [&waits](std::size_t from, std::size_t to) {
      waits.emplace_back(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to));
    };
    std::vector<std::size_t> last(after_.lanes.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t& before = last[index_of(after_.ops.lane[i])];
      if (before != n) wait(before, i);
      before = i;
      if (after_.ops.launched_by[i] != OpId::none) wait(index_of(after_.ops.launched_by[i]), i);
    }
    for (const Edge& edge : after_.edges) wait(index_of(edge.from), index_of(edge.to));
    std::sort(waits.begin(), waits.end());
    std::vector<std::uint32_t> missing(n, 0), ready;
    for (const auto& [from, to] : waits) ++missing[to];
    for (std::uint32_t i = 0; i < n; ++i)
      if (missing[i] == 0) ready.push_back(i);
    std::size_t done = 0;
    for (; done < ready.size(); ++done) {
      auto next = std::lower_bound(waits.begin(), waits.end(), std::pair(ready[done], std::uint32_t{0}));
      for (; next != waits.end() && next->first == ready[done]; ++next)
        if (--missing[next->second] == 0) ready.push_back(next->second);
    }
    if (done == n) return "";
    const auto stuck = std::find_if(missing.begin(), missing.end(), [](std::uint32_t left) { return left > 0; });
    return described(after_, OpId(static_cast<std::uint32_t>(stuck - missing.begin()))) + " waits for itself";
  }

  // Where the host issues it.
  [[nodiscard]] std::size_t issue_of(OpId op) const {
    const OpId by = after_.ops.launched_by[index_of(op)];
    return new_position_[index_of(by == OpId::none ? op : by)];
  }

  const Trace &before_, &after_;
  std::span<const OpId> moved_;
  std::vector<std::size_t> old_position_, new_position_;
};

// Of a replayed trace.
class ReplayCheck {
 public:
  ReplayCheck(const Trace& trace, std::span<const OpId> gate, std::span<const Picos> start, std::span<const Picos> end)
      : trace_(trace), gate_(gate), start_(start), end_(end) {}

  PlanVerdict verdict() const {
    for (const auto check : {&ReplayCheck::check_works, &ReplayCheck::check_edges, &ReplayCheck::check_residence})
      if (PlanVerdict verdict = (this->*check)(); !verdict.sound()) return verdict;
    return {};
  }

 private:
  [[nodiscard]] bool ran(OpId op) const { return start_[index_of(op)] != unknown_time; }

  [[nodiscard]] PlanVerdict check_works() const {
    std::vector<OpId> last(trace_.lanes.size(), OpId::none);
    for (std::size_t i = 0; i < trace_.ops.size(); ++i) {
      const OpId op{static_cast<std::uint32_t>(i)};
      const bool works = is_device_work(trace_.ops.kind[i]);
      if (works && !ran(op)) return {described(trace_, op) + " did not run"};
      if (!ran(op)) continue;
      const OpId by = trace_.ops.launched_by[i];
      if (by != OpId::none && start_[i] < start_[index_of(by)])
        return {described(trace_, op) + " ran before its launch"};
      if (!works || is_transfer_lane(trace_.ops.lane[i])) continue;
      OpId& before = last[index_of(trace_.ops.lane[i])];
      if (before != OpId::none && start_[i] < end_[index_of(before)])
        return {described(trace_, op) + " ran before " + described(trace_, before) + " on its stream had ended"};
      before = op;
    }
    return {};
  }
  // Where several transfers may be under way.
  [[nodiscard]] bool is_transfer_lane(LaneId lane) const {
    return trace_.lanes[index_of(lane)].kind == LaneKind::storage;
  }

  [[nodiscard]] PlanVerdict check_edges() const {
    for (const Edge& edge : trace_.edges)
      if (edge.kind != EdgeKind::unexplained && ran(edge.from) && ran(edge.to) &&
          start_[index_of(edge.to)] < end_[index_of(edge.from)] + edge.lag)
        return {described(trace_, edge.to) + " ran before " + described(trace_, edge.from) + " had ended"};
    return {};
  }

  struct Change {
    Picos at{};
    bool takes = false;
  };
  // When each storage is taken and given back; where the trace says nothing of it, none.
  [[nodiscard]] std::map<std::uint32_t, std::vector<Change>> changes() const {
    std::map<std::uint32_t, std::vector<Change>> found;
    for (std::size_t e = 0; e < trace_.memory_events.size(); ++e) {
      const MemoryEvent& event = trace_.memory_events[e];
      if (event.tensor == TensorId::none) continue;
      const bool takes = event.action == MemoryAction::allocate;
      if (!takes && event.action != MemoryAction::free_requested) continue;
      Picos at{};
      if (event.anchor != OpId::none && ran(event.anchor)) {
        // As much later than its call as recorded.
        const Picos call = trace_.ops.start[index_of(event.anchor)];
        const bool timed = event.time != unknown_time && call != unknown_time;
        at = start_[index_of(event.anchor)] + (timed ? std::max(Picos(0), event.time - call) : Picos(0));
      }
      if (e < gate_.size() && gate_[e] != OpId::none) at = std::max(at, end_[index_of(gate_[e])]);
      found[trace_.tensors.storage[index_of(event.tensor)]].push_back({at, takes});
    }
    for (auto& [storage, list] : found)
      std::stable_sort(list.begin(), list.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    return found;
  }

  // Taken when the kernel began, not given back before it was issued: what is given back then comes later there.
  static bool was_there(const std::vector<Change>& changes, Picos issued, Picos began) {
    Picos taken = unknown_time;
    int lives = 0;  // a repeated one may begin as the one before it ends
    for (const Change& change : changes) {
      if (change.takes) {
        if (lives++ == 0) taken = change.at;
      } else if (lives > 0 && --lives == 0) {
        if (taken <= began && change.at >= issued) return true;
      }
    }
    return lives > 0 && taken <= began;
  }

  [[nodiscard]] PlanVerdict check_residence() const {
    const auto known = changes();
    for (const Use& use : trace_.uses) {
      const std::size_t i = index_of(use.op);
      if (trace_.ops.kind[i] != OpKind::kernel) continue;
      const auto found = known.find(trace_.tensors.storage[index_of(use.tensor)]);
      if (found == known.end()) continue;
      const OpId by = trace_.ops.launched_by[i];
      if (!was_there(found->second, start_[by == OpId::none ? i : index_of(by)], start_[i]))
        return {described(trace_, use.op) + " used '" +
                    std::string(trace_.strings.text(trace_.tensors.name[index_of(use.tensor)])) +
                    "' while it was not in memory",
                use};
    }
    return {};
  }

  const Trace& trace_;
  std::span<const OpId> gate_;
  std::span<const Picos> start_, end_;
};

}  // namespace

PlanVerdict check_replay(const Trace& trace, std::span<const OpId> gate, std::span<const Picos> op_start,
                         std::span<const Picos> op_end) {
  return ReplayCheck(trace, gate, op_start, op_end).verdict();
}

PlanVerdict check_reordering(const Trace& before, const Trace& after, std::span<const OpId> moved) {
  return {Comparison(before, after, moved).fault()};
}

PlanVerdict check_placement(const Trace& trace, std::int16_t device, const MemoryPlan& plan, Bytes capacity) {
  struct Placed {
    std::int64_t end = 0;
    std::size_t request = 0;
  };
  std::map<std::int64_t, Placed> live;                   // by offset
  std::map<std::uint64_t, std::int64_t> offset_of_live;  // by address
  std::size_t request = 0;
  if (capacity > Bytes(0) && plan.pool > capacity) return {"the pool is larger than the capacity"};
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device || event.bytes <= Bytes(0)) continue;
    if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed) {
      const auto found = offset_of_live.find(event.address.count());
      if (found == offset_of_live.end()) continue;
      live.erase(found->second);
      offset_of_live.erase(found);
      continue;
    }
    if (event.action != MemoryAction::allocate) continue;
    const std::size_t number = request++;
    if (number >= plan.places.size() || plan.places[number].offset < Bytes(0)) continue;
    const PlannedPlace& place = plan.places[number];
    const std::int64_t begin = place.offset.count(), end = begin + event.bytes.count();
    const std::string name = "request " + std::to_string(number);
    if (event.bytes > place.size) return {name + " is larger than its place"};
    if (end > plan.pool.count()) return {name + " lies outside the pool"};
    const auto above = live.lower_bound(begin);
    if (above != live.end() && above->first < end)
      return {name + " overlaps request " + std::to_string(above->second.request)};
    if (above != live.begin() && std::prev(above)->second.end > begin)
      return {name + " overlaps request " + std::to_string(std::prev(above)->second.request)};
    if (offset_of_live.contains(event.address.count())) return {name + " has the address of a live one"};
    live[begin] = {end, number};
    offset_of_live[event.address.count()] = begin;
  }
  return {};
}

}  // namespace spillway::sim
