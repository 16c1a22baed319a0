#include "planners/order/trace_graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/input_error.h"
#include "sim/replay/storage_lives.h"

namespace spillway::planners {
namespace {

constexpr OperatorIndex no_operator = 0xffffffffU;

class GraphBuilder {
 public:
  explicit GraphBuilder(const Trace& trace)
      : trace_(trace), units_(order_units(trace)), lives_(storage_lives(trace)), unit_of_(trace.ops.size()) {
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      for (const OpId op : units_.of(u)) unit_of_[index_of(op)] = u;
      const OpId head = units_.heads[u];
      result_.heads.push_back(head);
      result_.graph.operators.emplace_back(trace.strings.text(trace.ops.name[index_of(head)]));
    }
    choose_device();
  }

  TraceOrderGraph run() {
    collect_uses();
    add_hazards();
    add_edges();
    add_waits();
    add_steps();
    add_storages();
    add_dependencies();
    result_.digest = digest_of_works(trace_);
    return std::move(result_);
  }

 private:
  struct UnitUse {
    std::uint32_t storage = 0;
    std::uint32_t unit = 0;
    bool reads = false, writes = false;
  };

  void choose_device() {
    result_.device = -1;
    for (const StorageLife& life : lives_.storages)
      if (life.used && life.device >= 0 && (result_.device < 0 || life.device < result_.device))
        result_.device = life.device;
  }

  // By storage, in the order units are issued; a unit that reads and writes once only.
  void collect_uses() {
    for (const Use& use : trace_.uses)
      uses_.push_back({trace_.tensors.storage[index_of(use.tensor)], unit_of_[index_of(use.op)],
                       use.access == Access::read, use.access == Access::write});
    std::sort(uses_.begin(), uses_.end(), [](const UnitUse& a, const UnitUse& b) {
      return std::pair(a.storage, a.unit) < std::pair(b.storage, b.unit);
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
    for (const Edge& edge : trace_.edges) {
      const std::uint32_t from = unit_of_[index_of(edge.from)], to = unit_of_[index_of(edge.to)];
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
    for (const OpId op : units_.of(unit)) {
      const std::size_t i = index_of(op);
      const OpKind kind = trace_.ops.kind[i];
      const Sync* sync = trace_.sync_of(op);
      const LaneId lane = sync == nullptr ? LaneId::none : sync->lane;
      const OpId by = trace_.ops.launched_by[i];
      if (kind == OpKind::event_record) {
        found = {Role::mark, lane, no_operator};
      } else if (kind == OpKind::stream_wait) {
        const bool marked = sync != nullptr && sync->event != OpId::none;
        found = {Role::hold, lane, marked ? unit_of_[index_of(sync->event)] : no_operator};
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
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
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
        for (const OpId op : units_.of(u)) {
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

  void add_steps() {
    std::vector<std::uint32_t> before, now;
    std::uint16_t step = no_index16;
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      const std::uint16_t own = trace_.ops.step[index_of(units_.heads[u])];
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
    const bool end_needed = std::any_of(uses_.begin(), uses_.end(),
                                        [&](const UnitUse& use) { return stays(lives_.storages[use.storage]); });
    const bool start_needed = std::any_of(uses_.begin(), uses_.end(),
                                          [&](const UnitUse& use) { return leaves(lives_.storages[use.storage]); });
    const auto units = static_cast<std::uint32_t>(units_.size());
    const OperatorIndex start = start_needed ? add_operator("start", 0) : no_operator;
    const OperatorIndex end = end_needed ? add_operator("end", units) : no_operator;
    for (std::uint32_t u = 0; u < units; ++u) {
      depend(start, u);
      if (end != no_operator) depend(u, end);
    }
    for (std::size_t i = 0; i < uses_.size();) {
      const std::uint32_t s = uses_[i].storage;
      std::size_t last = i;
      while (last < uses_.size() && uses_[last].storage == s) ++last;
      add_storage(lives_.storages[s], {uses_.data() + i, last - i}, start, end);
      i = last;
    }
    for (const StorageLife& life : lives_.storages)
      if (counts(life) && life.initial && !life.released) result_.graph.constant_bytes += life.bytes.count();
    add_program_order();
  }
  [[nodiscard]] bool counts(const StorageLife& life) const {
    return life.device == result_.device && life.bytes > Bytes(0);
  }
  // Made by an op and kept; there before and given back.
  [[nodiscard]] bool stays(const StorageLife& life) const { return counts(life) && !life.initial && !life.released; }
  [[nodiscard]] bool leaves(const StorageLife& life) const { return counts(life) && life.initial && life.released; }

  void add_storage(const StorageLife& life, std::span<const UnitUse> uses, OperatorIndex start, OperatorIndex end) {
    if (!counts(life) || (life.initial && !life.released)) return;
    OrderTensor tensor;
    tensor.source = life.initial ? start : uses.front().unit;
    tensor.size = life.bytes.count();
    for (const UnitUse& use : uses)
      if (use.unit != tensor.source) tensor.sinks.push_back(use.unit);
    if (!life.released) tensor.sinks.push_back(end);
    result_.graph.tensors.push_back(std::move(tensor));
  }

  void add_program_order() {
    std::sort(added_.begin(), added_.end());
    std::size_t next = 0;
    for (std::uint32_t u = 0; u <= units_.size(); ++u) {
      for (; next < added_.size() && added_[next].first == u; ++next)
        result_.graph.program_order.push_back(added_[next].second);
      if (u < units_.size()) result_.graph.program_order.push_back(u);
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

  const Trace& trace_;
  const OrderUnits units_;
  const StorageLives lives_;
  std::vector<std::uint32_t> unit_of_;  // by op
  std::vector<UnitUse> uses_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> dependencies_;
  std::vector<std::pair<std::uint32_t, OperatorIndex>> added_;
  TraceOrderGraph result_;
};

}  // namespace

TraceOrderGraph order_graph_of(const Trace& trace) {
  constexpr std::array needed = {Capability::uses};
  trace.require(needed, "plan order");
  if (trace.rank_count > 1)
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "ranks",
                     "a trace of " + std::to_string(trace.rank_count) + " ranks",
                     "orders are planned for one rank: take a step without pipeline stages");
  return GraphBuilder(trace).run();
}

OrderPlan plan_of(const TraceOrderGraph& graph, std::span<const OperatorIndex> order) {
  OrderPlan plan;
  plan.digest = graph.digest;
  for (const OperatorIndex op : order)
    if (graph.heads[op] != OpId::none) plan.order.push_back(graph.heads[op]);
  return plan;
}

}  // namespace spillway::planners
