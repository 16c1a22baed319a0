#include "planners/order/trace_graph.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "traces/storage_lives.h"

namespace spillway::planners {
namespace {

constexpr OperatorIndex no_operator = 0xffffffffU;

// What all ranks' graphs are made from.
struct Step {
  const Trace& trace;
  const OrderUnits units;
  const StorageLives lives;
  std::vector<std::uint32_t> unit_of;           // by op
  std::vector<std::vector<const Use*>> uses;    // by rank
  std::vector<std::vector<const Edge*>> edges;  // by rank, within it
  // Of storages with absences, by leave_after; null: no fates.
  std::map<std::uint32_t, std::vector<const Absence*>> absences;
  const OffloadPlan* fates = nullptr;

  Step(const Trace& of, const OffloadPlan* moved)
      : trace(of), units(order_units(of)), lives(storage_lives(of)), unit_of(of.ops.size()), fates(moved) {
    for (std::uint32_t u = 0; u < units.size(); ++u)
      for (const OpId op : units.of(u)) unit_of[index_of(op)] = u;
    for (const Lane& lane : trace.lanes) uses.resize(std::max<std::size_t>(uses.size(), lane.rank + std::size_t{1}));
    edges.resize(uses.size());
    for (const Use& use : trace.uses) uses[rank_of(use.op)].push_back(&use);
    for (const Edge& edge : trace.edges)
      if (rank_of(edge.from) == rank_of(edge.to)) edges[rank_of(edge.from)].push_back(&edge);
    if (fates == nullptr) return;
    for (const Absence& absence : fates->absences)
      absences[trace.tensors.storage[index_of(absence.tensor)]].push_back(&absence);
    const auto left = [](const Absence* absence) {
      return absence->leave_after == OpId::none ? std::int64_t{-1}
                                                : static_cast<std::int64_t>(index_of(absence->leave_after));
    };
    for (auto& [storage, list] : absences)
      std::stable_sort(list.begin(), list.end(), [&](const Absence* a, const Absence* b) { return left(a) < left(b); });
  }

  [[nodiscard]] std::size_t rank_of(OpId op) const { return trace.lanes[index_of(trace.ops.lane[index_of(op)])].rank; }
  [[nodiscard]] std::span<const Absence* const> absences_of(std::uint32_t storage) const {
    const auto found = absences.find(storage);
    if (found == absences.end()) return {};
    return found->second;
  }
};

// Where absences are asked back from.
OpId fetch_of(const Absence& absence) {
  return absence.fetch_at == OpId::none ? absence.back_before : absence.fetch_at;
}

// Of the units of one rank: [begin, begin + count) of the step's.
class GraphBuilder {
 public:
  GraphBuilder(const Step& step, std::size_t rank, std::uint32_t begin, std::uint32_t count)
      : step_(step),
        trace_(step.trace),
        units_(step.units),
        lives_(step.lives),
        rank_(rank),
        begin_(begin),
        count_(count) {
    for (std::uint32_t u = 0; u < count_; ++u) {
      const OpId head = units_.heads[begin_ + u];
      result_.heads.push_back(head);
      result_.graph.operators.emplace_back(trace_.strings.text(trace_.ops.name[index_of(head)]));
    }
  }

  TraceOrderGraph run() {
    collect_uses();
    choose_device();
    add_hazards();
    add_edges();
    add_waits();
    add_meetings();
    add_steps();
    add_storages();
    add_repeated();
    add_dependencies();
    result_.digest = digest_of_works(trace_);
    return std::move(result_);
  }

 private:
  struct UnitUse {
    std::uint32_t storage = 0;
    std::uint32_t unit = 0;
    bool reads = false, writes = false;
    std::uint32_t stay = 0;  // absences of the storage before it
  };

  [[nodiscard]] std::uint32_t unit_of(OpId op) const { return step_.unit_of[index_of(op)] - begin_; }
  [[nodiscard]] std::span<const OpId> ops_of(std::uint32_t unit) const { return units_.of(begin_ + unit); }

  void choose_device() {
    result_.device = -1;
    for (const UnitUse& use : uses_) {
      const StorageLife& life = lives_.storages[use.storage];
      if (life.device >= 0 && (result_.device < 0 || life.device < result_.device)) result_.device = life.device;
    }
  }

  void add_use(std::uint32_t storage, OpId op, bool writes) {
    std::uint32_t stay = 0;
    for (const Absence* absence : step_.absences_of(storage))
      if (absence->back_before != OpId::none && op >= absence->back_before) ++stay;
    uses_.push_back({storage, unit_of(op), !writes, writes, stay});
  }

  // By storage, in the order units are issued; a unit that reads and writes once only.
  void collect_uses() {
    for (const Use* use : step_.uses[rank_])
      add_use(trace_.tensors.storage[index_of(use->tensor)], use->op, use->access == Access::write);
    read_for_repeated();
    std::sort(uses_.begin(), uses_.end(), [](const UnitUse& a, const UnitUse& b) {
      return std::tuple(a.storage, a.unit, a.stay) < std::tuple(b.storage, b.unit, b.stay);
    });
    std::size_t kept = 0;
    for (const UnitUse& use : uses_) {
      if (kept > 0 && uses_[kept - 1].storage == use.storage && uses_[kept - 1].unit == use.unit) {
        uses_[kept - 1].reads |= use.reads;
        uses_[kept - 1].writes |= use.writes;
      } else {
        uses_[kept++] = use;
      }
    }
    uses_.resize(kept);
  }

  // The unit before which ops are repeated reads what these do. What they write and nobody asked back is there while
  // it runs.
  void read_for_repeated() {
    if (step_.fates == nullptr || step_.fates->recomputations.empty()) return;
    std::map<OpId, std::vector<const Use*>> uses;
    for (const Use* use : step_.uses[rank_]) uses[use->op].push_back(use);
    for (const Recomputation& group : step_.fates->recomputations) {
      if (step_.rank_of(group.before) != rank_) continue;
      std::set<std::uint32_t> written;
      for (const OpId op : group.ops) {
        for (const Use* use : uses[op]) {
          const std::uint32_t storage = trace_.tensors.storage[index_of(use->tensor)];
          if (use->access == Access::read && !written.contains(storage)) add_use(storage, group.before, false);
        }
        for (const Use* use : uses[op])
          if (use->access == Access::write) written.insert(trace_.tensors.storage[index_of(use->tensor)]);
      }
      for (const std::uint32_t storage : written) repeated_.emplace_back(storage, group.before);
    }
  }
  void add_repeated() {
    for (const auto& [storage, before] : repeated_) {
      const StorageLife& life = lives_.storages[storage];
      const auto absences = step_.absences_of(storage);
      const bool comes_back = std::any_of(absences.begin(), absences.end(), [before = before](const Absence* absence) {
        return absence->tier == Tier::recompute && fetch_of(*absence) == before;
      });
      if (!comes_back && counts(life)) result_.graph.tensors.push_back({unit_of(before), life.bytes.count(), {}});
    }
  }

  void add_hazards() {
    std::uint32_t writer = no_operator;
    std::vector<std::uint32_t> readers;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      const UnitUse& use = uses_[i];
      if (i == 0 || uses_[i - 1].storage != use.storage) {
        writer = no_operator;
        readers.clear();
      }
      depend(writer, use.unit);
      if (!use.writes) {
        readers.push_back(use.unit);
        continue;
      }
      for (const std::uint32_t reader : readers) depend(reader, use.unit);
      readers.clear();
      writer = use.unit;
    }
  }

  void add_edges() {
    for (const Edge* edge : step_.edges[rank_]) {
      const std::uint32_t from = unit_of(edge->from), to = unit_of(edge->to);
      if (from > to)
        ++result_.edges_left_out;
      else
        depend(from, to);
    }
  }

  // What a unit waits for or marks: works of one lane, or everything.
  enum class Role : std::uint8_t { work, mark, hold, barrier };
  struct Standing {
    Role role = Role::work;
    LaneId lane = LaneId::none;
    std::uint32_t event = no_operator;  // unit of the record a hold waits for
  };
  [[nodiscard]] Standing standing(std::uint32_t unit) const {
    Standing found;
    for (const OpId op : ops_of(unit)) {
      const std::size_t i = index_of(op);
      const OpKind kind = trace_.ops.kind[i];
      const Sync* sync = trace_.sync_of(op);
      const LaneId lane = sync == nullptr ? LaneId::none : sync->lane;
      const OpId by = trace_.ops.launched_by[i];
      if (kind == OpKind::event_record) {
        found = {Role::mark, lane, no_operator};
      } else if (kind == OpKind::stream_wait) {
        const bool marked = sync != nullptr && sync->event != OpId::none;
        found = {Role::hold, lane, marked ? unit_of(sync->event) : no_operator};
      } else if (kind == OpKind::device_sync || kind == OpKind::device_free || kind == OpKind::stream_sync ||
                 kind == OpKind::event_sync) {
        return {Role::barrier, LaneId::none, no_operator};
      } else if (by != OpId::none && waits_for_copy(trace_.ops.flags[index_of(by)], kind, trace_.ops.flags[i])) {
        return {Role::barrier, LaneId::none, no_operator};
      } else if (by == OpId::none && !is_host_call(kind) && trace_.ops.start[i] != unknown_time) {
        return {Role::barrier, LaneId::none, no_operator};  // its recorded start is all there is to place it
      }
    }
    return found;
  }

  // A barrier is behind every unit since the one before it, and before every unit up to the next. An event's record is
  // behind the works of its lane since the lane's record before; works of a lane are behind the last wait on it.
  void add_waits() {
    std::vector<std::vector<std::uint32_t>> unmarked(trace_.lanes.size());
    std::vector<std::uint32_t> held(trace_.lanes.size(), no_operator), marked(trace_.lanes.size(), no_operator);
    std::vector<std::uint32_t> since;
    std::uint32_t barrier = no_operator;
    for (std::uint32_t u = 0; u < count_; ++u) {
      const Standing stands = standing(u);
      depend(barrier, u);
      if (stands.role == Role::barrier) {
        for (const std::uint32_t before : since) depend(before, u);
        since.clear();
        barrier = u;
      } else {
        since.push_back(u);
      }
      if (stands.role == Role::work || stands.role == Role::barrier) {
        for (const OpId op : ops_of(u)) {
          if (is_host_call(trace_.ops.kind[index_of(op)])) continue;
          const std::size_t lane = index_of(trace_.ops.lane[index_of(op)]);
          depend(held[lane], u);
          unmarked[lane].push_back(u);
        }
        continue;
      }
      if (stands.lane == LaneId::none) continue;
      const std::size_t lane = index_of(stands.lane);
      std::uint32_t& last = stands.role == Role::mark ? marked[lane] : held[lane];
      depend(last, u);
      last = u;
      if (stands.role == Role::hold) {
        depend(stands.event, u);
      } else {
        for (const std::uint32_t before : unmarked[lane]) depend(before, u);
        unmarked[lane].clear();
      }
    }
  }

  // Ranks meet in one order.
  void add_meetings() {
    if (trace_.rank_count <= 1) return;
    std::uint32_t before = no_operator;
    for (std::uint32_t u = 0; u < count_; ++u) {
      const auto ops = ops_of(u);
      const bool meets = std::any_of(ops.begin(), ops.end(),
                                     [this](OpId op) { return trace_.ops.kind[index_of(op)] == OpKind::collective; });
      if (!meets) continue;
      depend(before, u);
      before = u;
    }
  }

  void add_steps() {
    std::vector<std::uint32_t> before, now;
    std::uint16_t step = no_index16;
    for (std::uint32_t u = 0; u < count_; ++u) {
      const std::uint16_t own = trace_.ops.step[index_of(result_.heads[u])];
      if (u > 0 && own != step) {
        const OperatorIndex between = add_operator("between steps", u);
        for (const std::uint32_t unit : now) depend(unit, between);
        if (!before.empty()) depend(before.back(), between);
        before = {between};
        now.clear();
      }
      step = own;
      if (!before.empty()) depend(before.back(), u);
      now.push_back(u);
    }
  }

  // An operator of no ops; in the program's order before unit `position`.
  OperatorIndex add_operator(const char* name, std::uint32_t position) {
    const auto added = static_cast<OperatorIndex>(result_.graph.operators.size());
    result_.graph.operators.emplace_back(name);
    result_.heads.push_back(OpId::none);
    added_.push_back({position, added});
    return added;
  }

  void add_storages() {
    bool end_needed = false, start_needed = false;
    for (const UnitUse& use : uses_) {
      const StorageLife& life = lives_.storages[use.storage];
      if (!counts(life) || is_constant(use.storage)) continue;
      end_needed |= !life.released;
      start_needed |= life.initial;
    }
    const OperatorIndex start = start_needed ? add_operator("start", 0) : no_operator;
    const OperatorIndex end = end_needed ? add_operator("end", count_) : no_operator;
    for (std::uint32_t u = 0; u < count_; ++u) {
      depend(start, u);
      if (end != no_operator) depend(u, end);
    }
    for (std::size_t i = 0; i < uses_.size();) {
      const std::uint32_t s = uses_[i].storage;
      std::size_t last = i;
      while (last < uses_.size() && uses_[last].storage == s) ++last;
      add_storage(s, {uses_.data() + i, last - i}, start, end);
      i = last;
    }
    for (std::uint32_t s = 0; s < lives_.storages.size(); ++s)
      if (counts(lives_.storages[s]) && is_constant(s))
        result_.graph.constant_bytes += lives_.storages[s].bytes.count();
    add_program_order();
  }
  [[nodiscard]] bool counts(const StorageLife& life) const {
    return life.device == result_.device && life.bytes > Bytes(0);
  }
  // There all along.
  [[nodiscard]] bool is_constant(std::uint32_t storage) const {
    const StorageLife& life = lives_.storages[storage];
    return life.initial && !life.released && step_.absences_of(storage).empty();
  }

  void add_storage(std::uint32_t storage, std::span<const UnitUse> uses, OperatorIndex start, OperatorIndex end) {
    const auto absences = step_.absences_of(storage);
    separate(uses, absences);
    const StorageLife& life = lives_.storages[storage];
    if (!counts(life) || is_constant(storage)) return;
    for (std::size_t i = 0; i < uses.size();) {
      std::size_t last = i;
      while (last < uses.size() && joined(uses[i].stay, uses[last].stay, absences)) ++last;
      const std::uint32_t stay = uses[i].stay, behind = uses[last - 1].stay;
      OrderTensor tensor;
      if (stay > 0)
        tensor.source = fetching_unit(*absences[stay - 1], uses[i].unit);
      else
        tensor.source = life.initial ? start : uses[i].unit;
      tensor.size = life.bytes.count();
      for (; i < last; ++i)
        if (uses[i].unit != tensor.source) tensor.sinks.push_back(uses[i].unit);
      if (!life.released && behind == absences.size()) tensor.sinks.push_back(end);
      result_.graph.tensors.push_back(std::move(tensor));
    }
  }
  // What is asked back before its store has ended never leaves.
  [[nodiscard]] static bool joined(std::uint32_t from, std::uint32_t to, std::span<const Absence* const> absences) {
    return std::all_of(absences.begin() + from, absences.begin() + to,
                       [](const Absence* absence) { return absence->forwarded; });
  }
  // Never behind the first use.
  [[nodiscard]] std::uint32_t fetching_unit(const Absence& absence, std::uint32_t first_use) const {
    return std::min(unit_of(fetch_of(absence)), first_use);
  }

  // Uses before an absence stay before it, what asks for it back and the uses behind it stay behind.
  void separate(std::span<const UnitUse> uses, std::span<const Absence* const> absences) {
    for (std::uint32_t k = 0; k < absences.size(); ++k) {
      const auto behind = std::find_if(uses.begin(), uses.end(), [k](const UnitUse& use) { return use.stay > k; });
      if (behind == uses.begin() || behind == uses.end()) continue;
      const OperatorIndex away = add_operator("away", std::prev(behind)->unit + 1);
      for (auto use = uses.begin(); use != behind; ++use) depend(use->unit, away);
      for (auto use = behind; use != uses.end(); ++use) depend(away, use->unit);
      const std::uint32_t fetching = fetching_unit(*absences[k], behind->unit);
      if (fetching > std::prev(behind)->unit) depend(away, fetching);
    }
  }

  void add_program_order() {
    std::sort(added_.begin(), added_.end());
    std::size_t next = 0;
    for (std::uint32_t u = 0; u <= count_; ++u) {
      for (; next < added_.size() && added_[next].first == u; ++next)
        result_.graph.program_order.push_back(added_[next].second);
      if (u < count_) result_.graph.program_order.push_back(u);
    }
  }

  void depend(std::uint32_t from, std::uint32_t to) {
    if (from != no_operator && from != to) dependencies_.emplace_back(from, to);
  }
  void add_dependencies() {
    std::sort(dependencies_.begin(), dependencies_.end());
    dependencies_.erase(std::unique(dependencies_.begin(), dependencies_.end()), dependencies_.end());
    for (std::size_t i = 0; i < dependencies_.size(); ++i) {
      if (i == 0 || dependencies_[i].first != dependencies_[i - 1].first)
        result_.graph.tensors.push_back({dependencies_[i].first, 0, {}});
      result_.graph.tensors.back().sinks.push_back(dependencies_[i].second);
    }
  }

  const Step& step_;
  const Trace& trace_;
  const OrderUnits& units_;
  const StorageLives& lives_;
  const std::size_t rank_;
  const std::uint32_t begin_, count_;
  std::vector<UnitUse> uses_;
  std::vector<std::pair<std::uint32_t, OpId>> repeated_;  // storages, and before what they are written again
  std::vector<std::pair<std::uint32_t, std::uint32_t>> dependencies_;
  std::vector<std::pair<std::uint32_t, OperatorIndex>> added_;
  TraceOrderGraph result_;
};

}  // namespace

std::vector<TraceOrderGraph> order_graphs_of(const Trace& trace, const OffloadPlan* fates) {
  constexpr std::array needed = {Capability::uses};
  trace.require(needed, "plan order");
  const Step step(trace, fates);
  std::vector<TraceOrderGraph> graphs;
  for (std::uint32_t begin = 0; begin < step.units.size();) {
    const std::size_t rank = step.rank_of(step.units.heads[begin]);
    std::uint32_t end = begin;
    while (end < step.units.size() && step.rank_of(step.units.heads[end]) == rank) ++end;
    graphs.push_back(GraphBuilder(step, rank, begin, end - begin).run());
    begin = end;
  }
  return graphs;
}

void add_order(const TraceOrderGraph& graph, std::span<const OperatorIndex> order, OrderPlan& plan) {
  plan.digest = graph.digest;
  for (const OperatorIndex op : order)
    if (graph.heads[op] != OpId::none) plan.order.push_back(graph.heads[op]);
}

}  // namespace spillway::planners
