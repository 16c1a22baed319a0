#include "sim/replay/order_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/input_error.h"
#include "sim/replay/plan_check.h"
#include "traces/host_order.h"
#include "traces/storage_lives.h"

namespace spillway::sim {
namespace {

constexpr std::uint32_t no_unit = 0xffffffffU;
constexpr const char* order_remedy = "plan the order again from this trace: `spillway plan order`";

std::string file_of(const Trace& trace) { return trace.provenance.empty() ? "" : trace.provenance.front().file; }

// A call that neither launches, waits, marks nor touches a tensor.
bool is_incidental(OpKind kind, bool launches, bool has_uses) {
  return !has_uses && !launches &&
         (kind == OpKind::host_work || kind == OpKind::device_malloc || kind == OpKind::launch);
}

std::size_t ranks_of(const Trace& trace) {
  std::size_t ranks = 1;
  for (const Lane& lane : trace.lanes) ranks = std::max<std::size_t>(ranks, lane.rank + std::size_t{1});
  return ranks;
}

std::uint16_t rank_of(const Trace& trace, OpId op) { return trace.lanes[index_of(trace.ops.lane[index_of(op)])].rank; }

class UnitBuilder {
 public:
  explicit UnitBuilder(const Trace& trace) : trace_(trace) {}

  OrderUnits run() {
    std::vector<bool> launches(trace_.ops.size(), false), has_uses(trace_.ops.size(), false);
    for (const OpId by : trace_.ops.launched_by)
      if (by != OpId::none) launches[index_of(by)] = true;
    for (const Edge& edge : trace_.edges)  // a transfer is asked for by the call that leads to it
      if (edge.kind != EdgeKind::unexplained && !is_host_call(trace_.ops.kind[index_of(edge.to)]) &&
          trace_.ops.launched_by[index_of(edge.to)] == OpId::none)
        launches[index_of(edge.from)] = true;
    for (const Use& use : trace_.uses) has_uses[index_of(use.op)] = true;
    waiting_.resize(trace_.lanes.size());
    std::vector<OpId> order = host_order(trace_);
    std::stable_sort(order.begin(), order.end(),
                     [this](OpId a, OpId b) { return rank_of(trace_, a) < rank_of(trace_, b); });
    std::uint16_t rank = 0;
    for (const OpId op : order) {
      if (rank_of(trace_, op) != rank) add_waiting();
      rank = rank_of(trace_, op);
      const std::size_t i = index_of(op);
      const OpKind kind = trace_.ops.kind[i];
      std::vector<OpId>& waiting = waiting_[index_of(trace_.ops.lane[i])];
      if (trace_.ops.launched_by[i] != OpId::none) {
        if (is_host_call(trace_.ops.kind[index_of(units_.heads.back())])) units_.heads.back() = op;
        units_.ops.push_back(op);
        units_.begin.back() = static_cast<std::uint32_t>(units_.ops.size());
      } else if (is_host_call(kind) && is_incidental(kind, launches[i], has_uses[i])) {
        waiting.push_back(op);
      } else {
        add(op, waiting);
      }
    }
    add_waiting();
    return std::move(units_);
  }

 private:
  // What nothing followed.
  void add_waiting() {
    for (std::vector<OpId>& waiting : waiting_) {
      if (waiting.empty()) continue;
      const OpId last = waiting.back();
      waiting.pop_back();
      add(last, waiting);
    }
  }
  void add(OpId head, std::vector<OpId>& waiting) {
    if (units_.begin.empty()) units_.begin.push_back(0);
    units_.ops.insert(units_.ops.end(), waiting.begin(), waiting.end());
    waiting.clear();
    units_.ops.push_back(head);
    units_.heads.push_back(head);
    units_.begin.push_back(static_cast<std::uint32_t>(units_.ops.size()));
  }

  const Trace& trace_;
  OrderUnits units_;
  std::vector<std::vector<OpId>> waiting_;  // by lane
};

// What repeated ops read and have not made themselves.
struct RepeatedRead {
  std::uint32_t storage = 0;
  OpId before = OpId::none;  // op they are repeated before
};
std::vector<RepeatedRead> repeated_reads(const Trace& trace, const OffloadPlan& fates) {
  std::vector<RepeatedRead> reads;
  if (fates.recomputations.empty()) return reads;
  std::vector<std::vector<const Use*>> uses(trace.ops.size());
  for (const Use& use : trace.uses) uses[index_of(use.op)].push_back(&use);
  for (const Recomputation& group : fates.recomputations) {
    std::set<std::uint32_t> made;
    for (const OpId op : group.ops) {
      if (index_of(op) >= uses.size()) continue;  // refused where it is put in
      for (const Use* use : uses[index_of(op)]) {
        const std::uint32_t storage = trace.tensors.storage[index_of(use->tensor)];
        if (use->access == Access::read && !made.contains(storage)) reads.push_back({storage, group.before});
      }
      for (const Use* use : uses[index_of(op)])
        if (use->access == Access::write) made.insert(trace.tensors.storage[index_of(use->tensor)]);
    }
  }
  return reads;
}

class OrderRewriter {
 public:
  OrderRewriter(const Trace& trace, const OrderPlan& plan, const OffloadPlan* fates)
      : trace_(trace), units_(order_units(trace)), fates_(fates) {
    constexpr std::array needed = {Capability::uses};
    trace.require(needed, "an order plan");
    find_units(plan);
  }

  Reordered run() {
    copy_header();
    move_ops();
    move_references();
    move_memory();
    out_.check_invariants();
    const PlanVerdict verdict = check_reordering(trace_, out_, moved_);
    if (!verdict.sound()) throw InputError(file_of(trace_), "order", verdict.fault, order_remedy);
    return {std::move(out_), std::move(moved_)};
  }

 private:
  void find_units(const OrderPlan& plan) {
    if (plan.digest != digest_of_works(trace_))
      throw InputError(file_of(trace_), "order", "the plan was made for another trace", order_remedy);
    std::vector<std::uint32_t> unit_of_head(trace_.ops.size(), no_unit);
    for (std::size_t u = 0; u < units_.size(); ++u)
      unit_of_head[index_of(units_.heads[u])] = static_cast<std::uint32_t>(u);
    for (const OpId head : plan.order) {
      const std::uint32_t unit = index_of(head) < unit_of_head.size() ? unit_of_head[index_of(head)] : no_unit;
      if (unit == no_unit)
        throw InputError(file_of(trace_), "order",
                         "op " + std::to_string(index_of(head)) + " is missing or comes twice", order_remedy);
      unit_of_head[index_of(head)] = no_unit;
      order_.push_back(unit);
    }
    if (order_.size() != units_.size())
      throw InputError(file_of(trace_), "order",
                       std::to_string(units_.size() - order_.size()) + " ops of the trace are not in the plan",
                       order_remedy);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](std::uint32_t a, std::uint32_t b) { return rank_of_unit(a) < rank_of_unit(b); });
  }
  [[nodiscard]] std::uint16_t rank_of_unit(std::uint32_t unit) const { return rank_of(trace_, units_.heads[unit]); }

  void copy_header() {
    out_ = trace_;
    out_.spans = {};
    out_.ops = {};
    out_.uses.clear();
    out_.edges.clear();
    out_.syncs.clear();
    out_.collectives.clear();
    out_.memory_events.clear();
    out_.memory_segments.clear();
    out_.memory_blocks.clear();
  }

  void move_ops() {
    moved_.resize(trace_.ops.size());
    out_.ops.reserve(trace_.ops.size());
    std::uint32_t next = 0;
    for (const std::uint32_t unit : order_)
      for (const OpId op : units_.of(unit)) moved_[index_of(op)] = OpId(next++);
    for (const std::uint32_t unit : order_) {
      for (const OpId op : units_.of(unit)) {
        OpRow row = trace_.op(op);
        row.launched_by = now(row.launched_by);
        if (row.launched_by != OpId::none) row.start = unknown_time;
        row.span = SpanId::none;
        out_.append_op(row);
      }
    }
    move_starts();
  }

  // The pause before a host call, or a work without a launch, is from the latest end of any call its rank issued before
  // it; less than 0 where threads run side by side. The same order gives the same starts.
  void move_starts() {
    struct Clock {
      Picos first = unknown_time, latest = unknown_time;  // of the recording
      Picos reached = unknown_time, last_start = unknown_time;
    };
    std::vector<Clock> clocks(ranks_of(trace_));
    std::vector<Picos> pause(trace_.ops.size(), Picos(0));
    for (const OpId op : host_order(trace_)) {
      const std::size_t i = index_of(op);
      if (!has_host_time(trace_, i)) continue;
      Clock& clock = clocks[rank_of(trace_, op)];
      if (clock.latest == unknown_time)
        clock.first = trace_.ops.start[i];
      else
        pause[i] = trace_.ops.start[i] - clock.latest;
      if (is_host_call(trace_.ops.kind[i]) || clock.latest == unknown_time)
        clock.latest = std::max(clock.latest, end_of(trace_, i));
    }
    std::vector<Picos> thread_end(trace_.lanes.size(), unknown_time);
    for (const std::uint32_t unit : order_) {
      for (const OpId op : units_.of(unit)) {
        const std::size_t i = index_of(op), j = index_of(now(op));
        if (!has_host_time(trace_, i)) continue;
        Clock& clock = clocks[rank_of(trace_, op)];
        const Picos free = clock.reached == unknown_time ? clock.first : clock.reached + pause[i];
        const std::size_t lane = index_of(trace_.ops.lane[i]);
        out_.ops.start[j] = std::max({free, thread_end[lane], clock.last_start});
        clock.last_start = out_.ops.start[j];
        thread_end[lane] = end_of(out_, j);
        if (is_host_call(trace_.ops.kind[i]) || clock.reached == unknown_time)
          clock.reached = std::max(clock.reached, thread_end[lane]);
      }
    }
  }
  static bool has_host_time(const Trace& trace, std::size_t i) {
    return trace.ops.launched_by[i] == OpId::none && trace.ops.start[i] != unknown_time;
  }
  // For the host: works run beside it.
  static Picos end_of(const Trace& trace, std::size_t i) {
    const Picos lasts = trace.ops.duration[i];
    const bool takes_host = is_host_call(trace.ops.kind[i]) && lasts != unknown_time;
    return trace.ops.start[i] + (takes_host ? lasts : Picos(0));
  }

  void move_references() {
    out_.uses = trace_.uses;
    for (Use& use : out_.uses) use.op = now(use.op);
    std::stable_sort(out_.uses.begin(), out_.uses.end(), [](const Use& a, const Use& b) { return a.op < b.op; });
    out_.edges = trace_.edges;
    for (Edge& edge : out_.edges) {
      edge.from = now(edge.from);
      edge.to = now(edge.to);
    }
    std::stable_sort(out_.edges.begin(), out_.edges.end(), [](const Edge& a, const Edge& b) { return a.to < b.to; });
    for (Edge& edge : out_.carried) {
      edge.from = now(edge.from);
      edge.to = now(edge.to);
    }
    out_.syncs = trace_.syncs;
    for (Sync& sync : out_.syncs) {
      sync.op = now(sync.op);
      sync.event = now(sync.event);
    }
    std::stable_sort(out_.syncs.begin(), out_.syncs.end(), [](const Sync& a, const Sync& b) { return a.op < b.op; });
    for (UnexplainedWait& wait : out_.unexplained_waits) wait.op = now(wait.op);
    std::stable_sort(out_.unexplained_waits.begin(), out_.unexplained_waits.end(),
                     [](const UnexplainedWait& a, const UnexplainedWait& b) { return a.op < b.op; });
    out_.collectives = trace_.collectives;
    for (Collective& collective : out_.collectives) collective.op = now(collective.op);
    std::stable_sort(out_.collectives.begin(), out_.collectives.end(),
                     [](const Collective& a, const Collective& b) { return a.op < b.op; });
  }

  // Memory events between units: gap k is before the k-th unit of the new order, the last behind them all.
  struct Gap {
    std::vector<std::uint32_t> freed, kept, kept_before, allocated;  // storages; memory events; events; storages
  };

  void move_memory() {
    lives_ = storage_lives(trace_);
    gaps_.resize(order_.size() + 1);
    place_storages();
    if (lives_.from_events) keep_others();
    if (!lives_.from_events) give_addresses();
    for (std::size_t e = 0; e < before_.size(); ++e) emit(before_[e], MemoryAction::allocate, OpId::none);
    const std::vector<OpId> anchor_of = anchors();
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      const OpId anchor = g == 0 ? OpId::none : anchor_of[g - 1];
      const OpId used = g == 0 ? OpId::none : last_of(order_[g - 1]);
      const bool rank_begins = g > 0 && g < order_.size() && rank_of_unit(order_[g - 1]) != rank_of_unit(order_[g]);
      const OpId behind = rank_begins ? OpId::none : anchor;
      for (const std::uint32_t s : gaps_[g].freed) emit(s, MemoryAction::free_requested, used);
      for (const std::uint32_t e : gaps_[g].kept) keep(e, anchor);
      for (const std::uint32_t e : gaps_[g].kept_before) keep(e, behind);
      for (const std::uint32_t s : gaps_[g].allocated) emit(s, MemoryAction::allocate, behind);
    }
    if (!out_.memory_events.empty()) out_.set(Capability::memory, !lives_.from_events);
    if (!lives_.from_events) {
      out_.memory_size_is_requested = true;
      out_.note("memory_from_uses", "",
                "no memory event names a tensor: what is alive is deduced from the tensors' uses", false);
    }
  }

  void place_storages() {
    std::vector<std::uint32_t> first(lives_.storages.size(), no_unit), last(lives_.storages.size(), 0);
    std::vector<std::uint32_t> gap_of_op(trace_.ops.size());
    for (std::uint32_t k = 0; k < order_.size(); ++k)
      for (const OpId op : units_.of(order_[k])) gap_of_op[index_of(op)] = k;
    for (const Use& use : trace_.uses) {
      const std::uint32_t s = trace_.tensors.storage[index_of(use.tensor)];
      first[s] = std::min(first[s], gap_of_op[index_of(use.op)]);
      last[s] = std::max(last[s], gap_of_op[index_of(use.op)]);
    }
    if (fates_ != nullptr)
      for (const RepeatedRead& read : repeated_reads(trace_, *fates_))
        if (index_of(read.before) < gap_of_op.size())
          last[read.storage] = std::max(last[read.storage], gap_of_op[index_of(read.before)]);
    for (std::uint32_t s = 0; s < lives_.storages.size(); ++s) {
      const StorageLife& life = lives_.storages[s];
      if (!life.used || life.bytes <= Bytes(0)) continue;
      if (life.initial)
        before_.push_back(s);
      else
        gaps_[first[s]].allocated.push_back(s);
      if (life.released) gaps_[last[s] + 1].freed.push_back(s);
    }
    if (lives_.from_events)
      std::sort(before_.begin(), before_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return lives_.storages[a].allocation < lives_.storages[b].allocation;
      });
  }

  // Events of no tensor, or of one that no op uses, stay behind as many units of their rank as before.
  void keep_others() {
    std::vector<std::uint32_t> unit_of_op(trace_.ops.size());
    std::vector<std::uint32_t> first_unit(ranks_of(trace_), 0);
    for (std::uint32_t u = static_cast<std::uint32_t>(units_.size()); u-- > 0;) first_unit[rank_of_unit(u)] = u;
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      for (const OpId op : units_.of(u)) unit_of_op[index_of(op)] = u;
    for (std::uint32_t e = 0; e < trace_.memory_events.size(); ++e) {
      const MemoryEvent& event = trace_.memory_events[e];
      const bool moves = event.action == MemoryAction::allocate || event.action == MemoryAction::free_requested ||
                         event.action == MemoryAction::free_completed;
      if (!moves) continue;
      if (event.tensor != TensorId::none && lives_.storages[trace_.tensors.storage[index_of(event.tensor)]].used)
        continue;
      if (event.anchor != OpId::none)
        gaps_[unit_of_op[index_of(event.anchor)] + std::size_t{1}].kept.push_back(e);
      else
        gaps_[first_unit[rank_of_device(event.device)]].kept_before.push_back(e);
    }
  }

  [[nodiscard]] std::uint16_t rank_of_device(std::int16_t device) const {
    for (const Device& one : trace_.devices)
      if (one.ordinal == device && one.rank < ranks_of(trace_)) return one.rank;
    return 0;
  }

  void give_addresses() {
    std::uint64_t next = std::uint64_t{1} << 40;
    addresses_.resize(lives_.storages.size());
    for (std::size_t s = 0; s < addresses_.size(); ++s) {
      addresses_[s] = Addr(next);
      next += (static_cast<std::uint64_t>(lives_.storages[s].bytes.count()) + 511) / 512 * 512 + 512;
    }
  }

  // The last host call of a unit, or what it has instead.
  [[nodiscard]] OpId last_of(std::uint32_t unit) const {
    OpId last = units_.heads[unit];
    for (const OpId op : units_.of(unit))
      if (is_host_call(trace_.ops.kind[index_of(op)])) last = op;
    return now(last);
  }
  // By place in the order: the last host call of the rank so far; before any, the unit's head.
  [[nodiscard]] std::vector<OpId> anchors() const {
    std::vector<OpId> found(order_.size(), OpId::none);
    OpId last = OpId::none;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      if (k > 0 && rank_of_unit(order_[k - 1]) != rank_of_unit(order_[k])) last = OpId::none;
      for (const OpId op : units_.of(order_[k]))
        if (is_host_call(trace_.ops.kind[index_of(op)])) last = op;
      found[k] = now(last == OpId::none ? units_.heads[order_[k]] : last);
    }
    return found;
  }

  void emit(std::uint32_t s, MemoryAction action, OpId anchor) {
    const StorageLife& life = lives_.storages[s];
    MemoryEvent event;
    if (life.allocation != StorageLife::no_event)
      event = trace_.memory_events[life.allocation];
    else
      event.address = addresses_[s];
    event.time = unknown_time;
    event.bytes = life.bytes;
    event.tensor = life.tensor;
    event.device = life.device;
    event.action = action;
    event.anchor = anchor;
    event.total_allocated = event.total_reserved = Bytes(-1);
    out_.memory_events.push_back(event);
  }
  void keep(std::uint32_t e, OpId anchor) {
    MemoryEvent event = trace_.memory_events[e];
    event.time = unknown_time;
    event.anchor = anchor;
    event.total_allocated = event.total_reserved = Bytes(-1);
    out_.memory_events.push_back(event);
  }

  [[nodiscard]] OpId now(OpId op) const { return op == OpId::none ? op : moved_[index_of(op)]; }

  const Trace& trace_;
  const OrderUnits units_;
  const OffloadPlan* fates_;          // null: none
  std::vector<std::uint32_t> order_;  // units
  std::vector<OpId> moved_;           // new ids by old
  StorageLives lives_;
  std::vector<std::uint32_t> before_;  // storages there before the first op
  std::vector<Gap> gaps_;
  std::vector<Addr> addresses_;  // by storage, where no event has them
  Trace out_;
};

class FateMover {
 public:
  FateMover(const Trace& before, const Reordered& after, const OffloadPlan& fates)
      : before_(before), after_(after), fates_(fates), uses_(fates.absences.empty() ? 0 : storage_count(before)) {
    for (const Absence& absence : fates.absences) check(absence.tensor);
    for (const Use& use : before.uses) {
      const std::uint32_t storage = before.tensors.storage[index_of(use.tensor)];
      if (storage < uses_.size() && is_device_work(before.ops.kind[index_of(use.op)]))
        uses_[storage].push_back({use.op, use.access == Access::write});
    }
    if (uses_.empty()) return;
    for (const RepeatedRead& read : repeated_reads(before, fates)) uses_[read.storage].push_back({read.before, false});
  }

  OffloadPlan run() {
    OffloadPlan plan = fates_;
    plan.digest = plan.digest == 0 ? 0 : digest_of_works(after_.trace);
    for (std::size_t k = 0; k < plan.absences.size(); ++k) move(k, plan.absences[k]);
    store_once_back(plan.absences);
    for (Recomputation& group : plan.recomputations) {
      group.before = now(group.before);
      for (OpId& op : group.ops) op = now(op);
    }
    std::sort(plan.recomputations.begin(), plan.recomputations.end(),
              [](const Recomputation& a, const Recomputation& b) { return a.before < b.before; });
    return plan;
  }

 private:
  struct StorageUse {
    OpId op = OpId::none;
    bool writes = false;
  };

  static std::size_t storage_count(const Trace& trace) {
    std::size_t count = 0;
    for (const std::uint32_t storage : trace.tensors.storage) count = std::max<std::size_t>(count, storage + 1);
    return count;
  }
  void check(TensorId tensor) const {
    if (tensor == TensorId::none || index_of(tensor) >= before_.tensors.size())
      throw InputError(file_of(before_), "fates", "they name a tensor that the trace doesn't have", order_remedy);
  }
  [[nodiscard]] OpId now(OpId op) const {
    if (op != OpId::none && index_of(op) >= after_.moved.size())
      throw InputError(file_of(before_), "fates", "they name an op that the trace doesn't have", order_remedy);
    return op == OpId::none ? op : after_.moved[index_of(op)];
  }

  // Ids are in the order of issue on one rank, before and after.
  void move(std::size_t k, Absence& absence) const {
    const Absence old = absence;
    OpId leave = OpId::none, store = OpId::none, back = OpId::none;
    for (const StorageUse& use : uses_[before_.tensors.storage[index_of(old.tensor)]]) {
      const OpId moved = now(use.op);
      if (old.leave_after != OpId::none && use.op <= old.leave_after) {
        if (leave == OpId::none || moved > leave) leave = moved;
        if (use.op <= old.store_after && use.writes && (store == OpId::none || moved > store)) store = moved;
      } else if (old.back_before != OpId::none && use.op >= old.back_before && (back == OpId::none || moved < back)) {
        back = moved;
      }
    }
    absence.leave_after = old.leave_after == OpId::none ? OpId::none : std::max(leave, now(old.leave_after));
    absence.back_before = old.back_before == OpId::none ? OpId::none : std::min(back, now(old.back_before));
    absence.store_after = !old.stores() ? OpId::none : store == OpId::none ? now(old.store_after) : store;
    if (absence.leave_after != OpId::none && absence.back_before != OpId::none &&
        absence.leave_after >= absence.back_before)
      throw InputError(file_of(before_), "order",
                       "it moves a use of '" +
                           std::string(before_.strings.text(before_.tensors.name[index_of(old.tensor)])) +
                           "' past absence " + std::to_string(k),
                       order_remedy);
    absence.fetch_at = now(old.fetch_at);
    if (absence.tier == Tier::recompute && absence.fetch_at == OpId::none) absence.fetch_at = now(old.back_before);
    if (absence.tier == Tier::recompute || absence.fetch_at == OpId::none) return;
    const bool too_early = absence.leave_after != OpId::none && absence.fetch_at <= absence.leave_after;
    if (too_early || absence.fetch_at > absence.back_before) absence.fetch_at = absence.back_before;
  }

  // What leaves a second time is stored once it is back from the first, whoever wrote it before that.
  void store_once_back(std::vector<Absence>& absences) const {
    std::map<std::uint32_t, std::vector<Absence*>> of_storage;
    for (Absence& absence : absences) of_storage[before_.tensors.storage[index_of(absence.tensor)]].push_back(&absence);
    const auto left = [](const Absence* absence) {
      return absence->leave_after == OpId::none ? std::size_t{0} : index_of(absence->leave_after) + std::size_t{1};
    };
    for (auto& [storage, list] : of_storage) {
      std::stable_sort(list.begin(), list.end(),
                       [&left](const Absence* a, const Absence* b) { return left(a) < left(b); });
      for (std::size_t k = 1; k < list.size(); ++k)
        if (list[k]->stores() && list[k - 1]->back_before != OpId::none)
          list[k]->store_after = std::max(list[k]->store_after, list[k - 1]->back_before);
    }
  }

  const Trace& before_;
  const Reordered& after_;
  const OffloadPlan& fates_;
  std::vector<std::vector<StorageUse>> uses_;  // by storage
};

// Numbers byte by byte, the lowest first; texts with their length behind them.
class WorkDigest {
 public:
  void add(std::uint64_t number) {
    for (int byte = 0; byte < 8; ++byte, number >>= 8U) hash_.add(number & 0xffU);
  }
  void add(std::string_view text) {
    hash_.add(text);
    add(text.size());
  }
  [[nodiscard]] std::uint64_t value() const { return hash_.value(); }

 private:
  Fnv1a hash_;
};

}  // namespace

OrderUnits order_units(const Trace& trace) { return UnitBuilder(trace).run(); }

std::uint64_t digest_of_works(const Trace& trace) {
  WorkDigest digest;
  digest.add(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    digest.add(static_cast<std::uint64_t>(trace.ops.kind[i]));
    digest.add(index_of(trace.ops.lane[i]));
    digest.add(index_of(trace.ops.launched_by[i]));
    digest.add(trace.strings.text(trace.ops.name[i]));
  }
  for (const Use& use : trace.uses) {
    digest.add(index_of(use.op));
    digest.add(trace.tensors.storage[index_of(use.tensor)]);
    digest.add(static_cast<std::uint64_t>(use.access));
  }
  return digest.value();
}

OrderPlan program_order(const Trace& trace) { return {digest_of_works(trace), order_units(trace).heads}; }

Reordered reorder(const Trace& trace, const OrderPlan& plan, const OffloadPlan* fates) {
  return OrderRewriter(trace, plan, fates).run();
}

Trace reordered(const Trace& trace, const OrderPlan& plan) { return reorder(trace, plan).trace; }

OffloadPlan moved_fates(const Trace& before, const Reordered& after, const OffloadPlan& fates) {
  return FateMover(before, after, fates).run();
}

}  // namespace spillway::sim
