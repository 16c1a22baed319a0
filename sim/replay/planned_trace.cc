#include "sim/replay/planned_trace.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/input_error.h"
#include "base/stop.h"
#include "sim/replay/planned_lives.h"

namespace spillway::sim {

std::string_view to_string(Tier tier) {
  switch (tier) {
    case Tier::host:
      return "host";
    case Tier::drive:
      return "drive";
    case Tier::recompute:
      return "recompute";
  }
  return "drive";
}

namespace {

constexpr std::size_t between_checks = 1024;  // whether to stop

class Rewriter {
 public:
  Rewriter(const Trace& trace, const OffloadPlan& plan)
      : old_(trace), plan_(plan), new_id_(trace.ops.size(), OpId::none), lives_(trace, new_id_) {}

  PlannedTrace run() {
    copy_unchanged();
    const std::size_t n = old_.ops.size();
    index_plan();
    last_work_.assign(old_.lanes.size(), OpId::none);
    first_use_of_.assign(n + 1, 0);
    for (const Use& use : old_.uses) ++first_use_of_[index_of(use.op) + 1];
    for (std::size_t i = 0; i < n; ++i) first_use_of_[i + 1] += first_use_of_[i];
    for (std::size_t i = 0; i < n; ++i) {
      if (i % between_checks == 0) check_stop();
      emit_column(i);
    }
    map_references();
    add_edges();
    place_memory_events();
    return std::move(out_);
  }

 private:
  struct InFlight {
    std::deque<OpId> ops;
    Bytes bytes{};
  };

  [[noreturn]] void fail(const std::string& place, const std::string& cause) const {
    throw InputError(old_.provenance.empty() ? "" : old_.provenance.front().file, place, cause,
                     "make the plan again from this trace");
  }
  [[nodiscard]] static std::string name_of(std::size_t absence) { return "absence " + std::to_string(absence); }

  void copy_unchanged() {
    Trace& to = out_.trace;
    to.strings = old_.strings;
    to.lanes = old_.lanes;
    to.spans = old_.spans;
    to.tensors = old_.tensors;
    to.memory_segments = old_.memory_segments;
    to.memory_blocks = old_.memory_blocks;
    to.memory_size_is_requested = old_.memory_size_is_requested;
    to.steps = old_.steps;
    to.devices = old_.devices;
    to.powers = old_.powers;
    to.provenance = old_.provenance;
    to.findings = old_.findings;
    to.capture_fit = old_.capture_fit;
    to.carried = old_.carried;
    to.start_up = old_.start_up;
    to.source_events = old_.source_events;
    to.time_base_ns = old_.time_base_ns;
    to.rank_count = old_.rank_count;
    out_.drives = plan_.drives;
    for (int c = 0; c < capability_count; ++c) {
      const auto capability = static_cast<Capability>(c);
      if (old_.has(capability)) to.set(capability, old_.is_inferred(capability));
    }
    store_name_ = to.strings.intern("offload store");
    hook_name_ = to.strings.intern("offload hook");
    load_name_ = to.strings.intern("offload load");
  }

  [[nodiscard]] std::size_t launch_column(OpId op) const {
    const OpId by = old_.ops.launched_by[index_of(op)];
    return index_of(by == OpId::none ? op : by);
  }
  [[nodiscard]] std::uint32_t storage_of(const Absence& absence) const {
    return old_.tensors.storage[index_of(absence.tensor)];
  }
  [[nodiscard]] OpId fetch_op(const Absence& absence) const {
    return absence.fetch_at == OpId::none ? absence.back_before : absence.fetch_at;
  }

  void index_plan() {
    out_.transfer.assign(plan_.absences.size(), OpId::none);
    out_.fetch.assign(plan_.absences.size(), OpId::none);
    out_.asked.assign(plan_.absences.size(), OpId::none);
    std::map<OpId, std::size_t> groups;
    for (std::size_t g = 0; g < plan_.recomputations.size(); ++g) {
      const Recomputation& group = plan_.recomputations[g];
      check_op(group.before, "recomputation " + std::to_string(g));
      for (const OpId op : group.ops) check_op(op, "recomputation " + std::to_string(g));
      if (!groups.emplace(group.before, g).second)
        fail("recomputation " + std::to_string(g), "there is another one before the same op");
      clones_before_launch_[launch_column(group.before)].push_back(g);
      clones_before_work_[index_of(group.before)].push_back(g);
    }
    clone_.resize(plan_.recomputations.size());
    clone_launch_.resize(plan_.recomputations.size());
    remade_.resize(plan_.recomputations.size());
    for (std::size_t k = 0; k < plan_.absences.size(); ++k) index_absence(k, groups);
    for (auto& [storage, absences] : absences_of_) check_order(absences);
    is_planned_.assign(old_.ops.size(), false);
    for (const ByColumn* columns : {&stores_after_, &loads_before_, &clones_before_launch_, &clones_before_work_})
      for (const auto& [column, list] : *columns) is_planned_[column] = true;
    out_.trace.ops.reserve(old_.ops.size() + 2 * plan_.absences.size());
    out_.source.reserve(old_.ops.size() + 2 * plan_.absences.size());
    out_.trace.uses.reserve(old_.uses.size() + 2 * plan_.absences.size());
    out_.trace.edges.reserve(old_.edges.size() + 4 * plan_.absences.size());
  }

  void check_op(OpId op, const std::string& place) const {
    if (op == OpId::none || index_of(op) >= old_.ops.size()) fail(place, "names an op the trace doesn't have");
    if (!is_device_work(old_.ops.kind[index_of(op)]))
      fail(place, "op " + std::to_string(index_of(op)) + " is no device work");
  }

  void index_absence(std::size_t k, const std::map<OpId, std::size_t>& groups) {
    const Absence& absence = plan_.absences[k];
    if (absence.tensor == TensorId::none || index_of(absence.tensor) >= old_.tensors.size())
      fail(name_of(k), "names a tensor the trace doesn't have");
    for (const OpId op : {absence.store_after, absence.leave_after, absence.fetch_at, absence.back_before})
      if (op != OpId::none) check_op(op, name_of(k));
    if (lives_.allocation(storage_of(absence)) == nullptr)
      fail(name_of(k), "the trace has no allocation of its tensor");
    absences_of_[storage_of(absence)].push_back(k);
    if (absence.stores() && absence.tier == Tier::recompute) fail(name_of(k), "stores a tensor that is recomputed");
    if (absence.stores()) stores_after_[index_of(absence.store_after)].push_back(k);
    if (absence.back_before == OpId::none) return;
    if (absence.tier != Tier::recompute) {
      loads_before_[launch_column(fetch_op(absence))].push_back(k);
      return;
    }
    const auto group = groups.find(fetch_op(absence));
    if (group == groups.end()) fail(name_of(k), "nothing recomputes its tensor");
    remade_[group->second].push_back(k);
  }

  void check_order(std::vector<std::size_t>& absences) const {
    const auto leave = [&](std::size_t k) {
      return plan_.absences[k].leave_after == OpId::none ? std::size_t{0} : index_of(plan_.absences[k].leave_after) + 1;
    };
    std::stable_sort(absences.begin(), absences.end(),
                     [&](std::size_t a, std::size_t b) { return leave(a) < leave(b); });
    std::size_t reached = 0;
    for (const std::size_t k : absences) {
      const Absence& a = plan_.absences[k];
      if (leave(k) < reached) fail(name_of(k), "begins before an earlier absence of its tensor has ended");
      if (a.stores() && index_of(a.store_after) + 1 < reached) fail(name_of(k), "is stored while it is away");
      if (a.stores() && a.leave_after != OpId::none && index_of(a.store_after) > index_of(a.leave_after))
        fail(name_of(k), "is stored after it has left");
      if (a.stores() && a.leave_after == OpId::none)
        fail(name_of(k), "is stored though it was away from the beginning");
      reached = a.back_before == OpId::none ? old_.ops.size() + 1 : index_of(a.back_before) + 1;
      if (reached <= leave(k)) fail(name_of(k), "is back before it has left");
      if (a.back_before != OpId::none && index_of(fetch_op(a)) + 1 > reached)
        fail(name_of(k), "is asked for after its next use");
    }
  }

  void emit_column(std::size_t i) {
    const auto each = [&](const ByColumn& columns, const auto& emit) {
      if (const auto found = is_planned_[i] ? columns.find(i) : columns.end(); found != columns.end())
        for (const std::size_t one : found->second) emit(one);
    };
    each(loads_before_, [&](std::size_t k) { emit_load(k, i); });
    each(clones_before_launch_, [&](std::size_t g) { emit_launches(g); });
    each(clones_before_work_, [&](std::size_t g) { emit_works(g); });
    const OpId id = append(old_.op(OpId(static_cast<std::uint32_t>(i))), OpId(static_cast<std::uint32_t>(i)));
    new_id_[i] = id;
    copy_uses(i, id);
    if (is_host_call(old_.ops.kind[i]))
      note_host_call(old_.ops.lane[i], id);
    else
      last_work_[index_of(old_.ops.lane[i])] = id;
    each(stores_after_, [&](std::size_t k) { emit_store(k); });
  }

  OpId append(const OpRow& row, OpId source) {
    out_.source.push_back(source);
    return out_.trace.append_op(row);
  }
  void copy_uses(std::size_t i, OpId to) {
    for (std::size_t u = first_use_of_[i]; u < first_use_of_[i + 1]; ++u) {
      const Use& use = old_.uses[u];
      out_.trace.uses.push_back({to, use.tensor, use.access});
    }
  }
  void note_host_call(LaneId lane, OpId call) {
    if (last_call_.size() <= index_of(lane)) last_call_.resize(index_of(lane) + 1, OpId::none);
    last_call_[index_of(lane)] = call;
    const auto waits = host_waits_.find(lane);
    if (waits == host_waits_.end()) return;
    for (const OpId store : waits->second) edge(store, call);
    host_waits_.erase(waits);
  }
  [[nodiscard]] OpId last_call(LaneId lane) const {
    return index_of(lane) < last_call_.size() ? last_call_[index_of(lane)] : OpId::none;
  }
  [[nodiscard]] OpId last_work(LaneId lane) const { return last_work_[index_of(lane)]; }
  void edge(OpId from, OpId to) { out_.trace.edges.push_back({from, to, EdgeKind::data, false, Picos{}}); }

  LaneId transfer_lane(OpId beside, Tier tier, bool inbound) {
    const Lane& device = old_.lanes[index_of(old_.ops.lane[index_of(beside)])];
    const auto key = std::tuple(device.rank, device.device, tier, inbound);
    const auto found = transfer_lanes_.find(key);
    if (found != transfer_lanes_.end()) return found->second;
    Lane lane;
    lane.kind = tier == Tier::drive ? LaneKind::storage : LaneKind::stream;
    lane.rank = device.rank;
    lane.device = device.device;
    lane.number = (tier == Tier::drive ? 1'000'000 : 1'000'002) + (inbound ? 1 : 0);
    lane.name = out_.trace.strings.intern(std::string(inbound ? "loads from " : "stores to ") +
                                          (tier == Tier::drive ? "drives" : "host memory"));
    const LaneId id = out_.trace.lane(lane);
    const std::int64_t workers = tier == Tier::host ? 1 : inbound ? plan_.load_workers : plan_.store_workers;
    out_.lanes.push_back({.lane = id,
                          .rank = device.rank,
                          .device = device.device,
                          .tier = tier,
                          .inbound = inbound,
                          .width = static_cast<std::uint32_t>(std::max<std::int64_t>(1, workers)),
                          .route = plan_.route});
    transfer_lanes_.emplace(key, id);
    return id;
  }

  OpId append_transfer(std::size_t k, OpId beside, bool inbound) {
    const Absence& absence = plan_.absences[k];
    const OpRow near = old_.op(beside);
    OpRow row;
    row.name = inbound ? load_name_ : store_name_;
    if (absence.tier == Tier::drive)
      row.kind = inbound ? OpKind::storage_read : OpKind::storage_write;
    else
      row.kind = inbound ? OpKind::copy_host_to_device : OpKind::copy_device_to_host;
    row.phase = near.phase;
    row.layer = near.layer;
    row.micro_batch = near.micro_batch;
    row.step = near.launched_by == OpId::none ? near.step : old_.ops.step[index_of(near.launched_by)];
    row.lane = transfer_lane(beside, absence.tier, inbound);
    row.bytes = lives_.allocation(storage_of(absence))->bytes;
    row.duration = Picos{};
    const OpId id = append(row, OpId::none);
    out_.trace.uses.push_back({id, absence.tensor, inbound ? Access::write : Access::read});
    return id;
  }

  void emit_store(std::size_t k) {
    const Absence& absence = plan_.absences[k];
    const OpId store = append_transfer(k, absence.store_after, false);
    out_.transfer[k] = store;
    edge(new_id_[index_of(absence.store_after)], store);
    const auto [before, is_first] = last_store_.try_emplace(storage_of(absence), store);
    if (!is_first) edge(std::exchange(before->second, store), store);  // of an earlier absence, forwarded
    const OpId by = old_.ops.launched_by[index_of(absence.store_after)];
    if (by == OpId::none) return;
    limit_stores(old_.ops.lane[index_of(by)], store);
    emit_host_time(by);
  }

  // The host's own for a transfer, behind the call or before the one it is asked for at.
  void emit_host_time(OpId call) {
    if (plan_.host_time == Picos(0) || !is_host_call(old_.ops.kind[index_of(call)])) return;
    OpRow row = old_.op(call);
    row.name = hook_name_;
    row.kind = OpKind::host_work;
    row.flags = 0;
    row.start = unknown_time;
    row.duration = plan_.host_time;
    note_host_call(row.lane, append(row, OpId::none));
  }

  void limit_stores(LaneId host, OpId store) {
    const Bytes limit = plan_.in_flight_of(old_.lanes[index_of(host)].rank);
    if (limit == Bytes(0)) return;
    InFlight& stores = in_flight_[host];
    const auto size = [this](OpId op) { return out_.trace.ops.bytes[index_of(op)]; };
    stores.ops.push_back(store);
    stores.bytes += size(store);
    while (stores.bytes > limit && stores.ops.size() > 1) {
      host_waits_[host].push_back(stores.ops.front());
      stores.bytes = stores.bytes - size(stores.ops.front());
      stores.ops.pop_front();
    }
  }

  void emit_load(std::size_t k, std::size_t column) {
    const Absence& absence = plan_.absences[k];
    if (!plan_.paced_by_device) emit_host_time(OpId(static_cast<std::uint32_t>(column)));
    const OpId asked = plan_.paced_by_device ? last_work(old_.ops.lane[index_of(fetch_op(absence))])
                                             : last_call(old_.ops.lane[column]);
    out_.asked[k] = asked;
    if (absence.forwarded) return;
    const OpId load = append_transfer(k, fetch_op(absence), true);
    out_.fetch[k] = load;
    if (asked != OpId::none) edge(asked, load);
    // The copy that it reads may be an earlier absence's, still under way.
    if (const auto stored = last_store_.find(storage_of(absence)); stored != last_store_.end())
      edge(stored->second, load);
    if (plan_.paced_by_device && absence.leave_after != OpId::none) {  // which may be on another stream
      const OpId left = new_id_[index_of(absence.leave_after)];
      if (left == OpId::none) fail(name_of(k), "is asked for before it has left");
      edge(left, load);
    }
    waits_for_load_.emplace_back(load, OpId(static_cast<std::uint32_t>(launch_column(absence.back_before))));
    loaded_[storage_of(absence)] = load;
  }

  // `again` repeats `op`, or launches what does: it comes after the loads of what that reads, which may have been asked
  // for earlier and for a later use.
  void wait_for_loads(OpId op, OpId again) {
    for (std::size_t u = first_use_of_[index_of(op)]; u < first_use_of_[index_of(op) + 1]; ++u) {
      if (old_.uses[u].access != Access::read) continue;
      const auto load = loaded_.find(old_.tensors.storage[index_of(old_.uses[u].tensor)]);
      if (load != loaded_.end()) edge(load->second, again);
    }
  }

  void emit_launches(std::size_t g) {
    for (const OpId op : plan_.recomputations[g].ops) {
      const OpId by = old_.ops.launched_by[index_of(op)];
      OpId launch = OpId::none;
      if (by != OpId::none) {
        OpRow row = old_.op(by);
        row.start = unknown_time;
        row.phase = Phase::recompute;
        launch = append(row, by);
        note_host_call(row.lane, launch);
        wait_for_loads(op, launch);
      }
      clone_launch_[g].push_back(launch);
    }
  }

  void emit_works(std::size_t g) {
    const Recomputation& group = plan_.recomputations[g];
    for (std::size_t i = 0; i < group.ops.size(); ++i) {
      OpRow row = old_.op(group.ops[i]);
      row.start = unknown_time;
      row.phase = Phase::recompute;
      row.launched_by = clone_launch_[g][i];
      row.step = old_.ops.step[launch_column(group.before)];
      const OpId id = append(row, group.ops[i]);
      clone_[g].push_back(id);
      if (row.launched_by == OpId::none) wait_for_loads(group.ops[i], id);
      copy_uses(index_of(group.ops[i]), id);
      if (const Collective* collective = old_.collective_of(group.ops[i])) {
        Collective again = *collective;
        again.op = id;
        out_.trace.collectives.push_back(again);
      }
    }
  }

  [[nodiscard]] OpId mapped(OpId old) const { return old == OpId::none ? old : new_id_[index_of(old)]; }

  void map_references() {
    Trace& to = out_.trace;
    for (std::size_t i = 0; i < to.ops.size(); ++i) {
      const OpId source = out_.source[i];
      if (source == OpId::none || new_id_[index_of(source)] != OpId(static_cast<std::uint32_t>(i))) continue;
      to.ops.launched_by[i] = mapped(old_.ops.launched_by[index_of(source)]);
    }
    to.syncs = old_.syncs;
    for (Sync& sync : to.syncs) {
      sync.op = mapped(sync.op);
      sync.event = mapped(sync.event);
    }
    to.unexplained_waits = old_.unexplained_waits;
    for (UnexplainedWait& wait : to.unexplained_waits) wait.op = mapped(wait.op);
    for (const Collective& collective : old_.collectives) {
      to.collectives.push_back(collective);
      to.collectives.back().op = mapped(collective.op);
    }
    std::stable_sort(to.collectives.begin(), to.collectives.end(),
                     [](const Collective& a, const Collective& b) { return a.op < b.op; });
  }

  void add_edges() {
    std::unordered_map<std::uint32_t, std::vector<std::pair<std::size_t, OpId>>> clones;  // of an op: group, clone
    for (std::size_t g = 0; g < clone_.size(); ++g)
      for (std::size_t i = 0; i < clone_[g].size(); ++i)
        clones[static_cast<std::uint32_t>(plan_.recomputations[g].ops[i])].emplace_back(g, clone_[g][i]);
    for (const Edge& old : old_.edges) {
      Edge copy = old;
      copy.from = mapped(old.from);
      copy.to = mapped(old.to);
      out_.trace.edges.push_back(copy);
      if (clones.empty() || old.kind == EdgeKind::unexplained)
        continue;  // what is computed again waits for nothing of the kind
      const auto to = clones.find(static_cast<std::uint32_t>(old.to));
      const auto from = clones.find(static_cast<std::uint32_t>(old.from));
      if (to != clones.end())
        for (const auto& [group, clone] : to->second)
          add_edge_into(old, group, clone, from == clones.end() ? nullptr : &from->second);
      if (from != clones.end())
        for (const auto& [group, clone] : from->second)
          if (rank_of(old.to) == rank_of(old.from) &&
              index_of(old.to) >= index_of(plan_.recomputations[group].before)) {
            copy.from = clone;
            copy.to = mapped(old.to);
            out_.trace.edges.push_back(copy);
          }
    }
    for (const auto& [load, waiting] : waits_for_load_) edge(load, mapped(waiting));
    for (Edge& edge : out_.trace.carried) {
      edge.from = mapped(edge.from);
      edge.to = mapped(edge.to);
    }
  }

  // Other ranks get what the first run made, whatever their place in the trace.
  [[nodiscard]] std::int32_t rank_of(OpId op) const { return old_.lanes[index_of(old_.ops.lane[index_of(op)])].rank; }

  void add_edge_into(const Edge& old, std::size_t group, OpId clone,
                     const std::vector<std::pair<std::size_t, OpId>>* sources) {
    Edge copy = old;
    copy.to = clone;
    copy.from = mapped(old.from);
    if (sources != nullptr)
      for (const auto& [other, source] : *sources)
        if (other == group) copy.from = source;
    out_.trace.edges.push_back(copy);
  }

  void place_memory_events() {
    for (std::size_t k = 0; k < plan_.absences.size(); ++k) place_absence(k);
    for (std::size_t g = 0; g < plan_.recomputations.size(); ++g) place_recomputation(g);
    RewrittenMemory memory = lives_.write();
    out_.trace.memory_events = std::move(memory.events);
    out_.gate = std::move(memory.gate);
  }

  void place_absence(std::size_t k) {
    const Absence& absence = plan_.absences[k];
    const std::uint32_t storage = storage_of(absence);
    if (absence.forwarded) {  // it never leaves, but its store reads it
      if (absence.stores()) lives_.hold(storage, launch_column(absence.leave_after), out_.transfer[k]);
      return;
    }
    if (absence.leave_after != OpId::none) {
      const std::size_t column = launch_column(absence.leave_after);
      lives_.give_back(storage, column, new_id_[column], out_.transfer[k]);
    } else {
      lives_.away_at_the_start(storage);
    }
    if (absence.loads()) lives_.take(storage, launch_column(fetch_op(absence)), out_.fetch[k]);
  }

  [[nodiscard]] OpId launch_or_work(std::size_t g, std::size_t i) const {
    return clone_launch_[g][i] == OpId::none ? clone_[g][i] : clone_launch_[g][i];
  }

  // What the repeated ops write: the storages brought back, and temporaries.
  void place_recomputation(std::size_t g) {
    const Recomputation& group = plan_.recomputations[g];
    const std::size_t column = launch_column(group.before);
    std::map<std::uint32_t, bool> wanted;  // storage: taken already
    for (const std::size_t k : remade_[g]) wanted.emplace(storage_of(plan_.absences[k]), false);
    struct Span {
      std::size_t first = 0, last = 0;
    };
    std::map<std::uint32_t, Span> temporaries;
    for (std::size_t i = 0; i < group.ops.size(); ++i) {
      const std::size_t op = index_of(group.ops[i]);
      for (std::size_t u = first_use_of_[op]; u < first_use_of_[op + 1]; ++u) {
        const bool writes = old_.uses[u].access == Access::write;
        const std::uint32_t storage = old_.tensors.storage[index_of(old_.uses[u].tensor)];
        const auto found = wanted.find(storage);
        const auto temporary = temporaries.find(storage);
        if (found != wanted.end()) {
          if (writes && !found->second) lives_.take(storage, column, launch_or_work(g, i));
          found->second |= writes;
        } else if (temporary != temporaries.end()) {
          temporary->second.last = i;
        } else if (writes && is_fresh(op, storage)) {
          temporaries[storage] = {i, i};
        }
      }
    }
    for (const auto& [storage, taken] : wanted)
      if (!taken) fail("recomputation " + std::to_string(g), "doesn't write a tensor it is to bring back");
    for (const auto& [storage, span] : temporaries)
      lives_.temporary(storage, column, launch_or_work(g, span.first), launch_or_work(g, span.last));
  }

  // True when `op` made the storage, false when it changed one that was there.
  [[nodiscard]] bool is_fresh(std::size_t op, std::uint32_t storage) const {
    for (std::size_t u = first_use_of_[op]; u < first_use_of_[op + 1]; ++u)
      if (old_.uses[u].access == Access::read && old_.tensors.storage[index_of(old_.uses[u].tensor)] == storage)
        return false;
    return lives_.allocation(storage) != nullptr;
  }

  using ByColumn = std::unordered_map<std::size_t, std::vector<std::size_t>>;

  const Trace& old_;
  const OffloadPlan& plan_;
  std::vector<OpId> new_id_;  // by old op
  PlannedLives lives_;
  PlannedTrace out_;
  StringId store_name_{}, load_name_{}, hook_name_{};
  std::map<std::uint32_t, std::vector<std::size_t>> absences_of_;  // by storage, in time order
  ByColumn stores_after_, loads_before_;                           // absences
  ByColumn clones_before_launch_, clones_before_work_;             // recomputations
  std::vector<bool> is_planned_;                                   // by column: one of these has it
  std::vector<std::vector<OpId>> clone_, clone_launch_;            // by recomputation
  std::vector<std::vector<std::size_t>> remade_;                   // by recomputation: the absences it ends
  std::vector<std::size_t> first_use_of_;
  std::vector<OpId> last_call_;  // by host lane
  std::vector<OpId> last_work_;  // by stream
  std::map<LaneId, std::vector<OpId>> host_waits_;
  std::map<LaneId, InFlight> in_flight_;  // stores a host has handed over, as far as it has not waited for them
  std::map<std::tuple<std::uint16_t, std::int16_t, Tier, bool>, LaneId> transfer_lanes_;
  std::map<std::uint32_t, OpId> last_store_;           // by storage
  std::map<std::uint32_t, OpId> loaded_;               // by storage: its latest load so far
  std::vector<std::pair<OpId, OpId>> waits_for_load_;  // load (new), launch (old)
};

}  // namespace

const TransferLane* PlannedTrace::lane_of(LaneId lane) const {
  for (const TransferLane& candidate : lanes)
    if (candidate.lane == lane) return &candidate;
  return nullptr;
}

PlannedTrace planned_trace(const Trace& trace, const OffloadPlan& plan) { return Rewriter(trace, plan).run(); }

// A host thread asks for memory in the order of its calls: what it asks for later is no earlier.
static void keep_host_order(const PlannedTrace& planned, std::vector<Picos>& times) {
  std::unordered_map<LaneId, Picos> reached;
  for (std::size_t e = 0; e < times.size(); ++e) {
    const OpId anchor = planned.trace.memory_events[e].anchor;
    if (anchor == OpId::none || planned.gate[e] != OpId::none) continue;
    if (!is_host_call(planned.trace.ops.kind[index_of(anchor)])) continue;
    Picos& last = reached[planned.trace.ops.lane[index_of(anchor)]];
    times[e] = last = std::max(last, times[e]);
  }
}

std::vector<Picos> ordered_event_times(const PlannedTrace& planned, std::span<const Picos> op_start,
                                       std::span<const Picos> op_end) {
  std::vector<Picos> times = event_times(planned.trace, planned.gate, op_start, op_end);
  keep_host_order(planned, times);
  return times;
}

std::vector<Picos> order_events(PlannedTrace& planned, std::span<const Picos> op_start, std::span<const Picos> op_end) {
  return sort_events(planned, ordered_event_times(planned, op_start, op_end));
}

std::vector<Picos> sort_events(PlannedTrace& planned, std::vector<Picos> times) {
  if (std::is_sorted(times.begin(), times.end())) return times;
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
  std::vector<MemoryEvent> events;
  std::vector<OpId> gate;
  std::vector<Picos> sorted;
  events.reserve(order.size());
  gate.reserve(order.size());
  sorted.reserve(order.size());
  for (const std::size_t e : order) {
    events.push_back(planned.trace.memory_events[e]);
    gate.push_back(planned.gate[e]);
    sorted.push_back(times[e]);
  }
  planned.trace.memory_events = std::move(events);
  planned.gate = std::move(gate);
  return sorted;
}

std::vector<Picos> event_times(const Trace& trace, std::span<const OpId> gate, std::span<const Picos> op_start,
                               std::span<const Picos> op_end) {
  std::vector<Picos> times(trace.memory_events.size(), Picos(0));
  for (std::size_t e = 0; e < times.size(); ++e) {
    const MemoryEvent& event = trace.memory_events[e];
    if (event.anchor == OpId::none) continue;
    const std::size_t op = index_of(event.anchor);
    if (op_start[op] == unknown_time) continue;
    const Picos recorded = trace.ops.start[op];
    const bool timed = event.time != unknown_time && recorded != unknown_time;
    Picos later = timed ? std::max(Picos(0), event.time - recorded) : Picos(0);
    // Of a faster host everything in a call is sooner.
    const Picos took = op_end[op] - op_start[op], recorded_for = trace.ops.duration[op];
    if (took < recorded_for) later = from_seconds(to_seconds(later) * (to_seconds(took) / to_seconds(recorded_for)));
    times[e] = op_start[op] + later;
    if (e < gate.size() && gate[e] != OpId::none) times[e] = std::max(times[e], op_end[index_of(gate[e])]);
  }
  return times;
}

}  // namespace spillway::sim
