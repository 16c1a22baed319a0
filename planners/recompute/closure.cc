#include "planners/recompute/closure.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

}  // namespace

struct RecomputeIndex::Query {
  std::size_t position = 0;  // of `before`
  const AwayUntil* away = nullptr;
  std::set<std::size_t> wanted;                   // saved tensors
  std::map<std::uint32_t, std::size_t> rebuilt;   // storage: how many of its writes are done again
  std::map<std::uint32_t, std::size_t> versions;  // storage: most writes that a repeated op expects to have been done
  std::set<OpId> ops;
  std::vector<OpId> pending;  // of the ops: those whose operands are still to be looked at
};

RecomputeIndex::RecomputeIndex(const Trace& trace, std::span<const SavedTensor> saved) : trace_(trace), saved_(saved) {
  std::uint32_t count = 0;
  for (const std::uint32_t storage : trace.tensors.storage) count = std::max(count, storage + 1);
  storages_.resize(count);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t)
    storages_[trace.tensors.storage[t]].tensor = TensorId(static_cast<std::uint32_t>(t));
  for (std::size_t s = 0; s < saved.size(); ++s) storages_[saved[s].storage].saved = s;
  index_memory();
  index_uses();
}

std::size_t RecomputeIndex::position(OpId op) const {
  const OpId by = trace_.ops.launched_by[index_of(op)];
  return index_of(by == OpId::none ? op : by);
}

void RecomputeIndex::index_memory() {
  for (Storage& storage : storages_) storage.given_back = never;
  std::size_t column = 0;
  for (const MemoryEvent& event : trace_.memory_events) {
    if (event.anchor != OpId::none) column = std::max(column, index_of(event.anchor));
    if (event.tensor == TensorId::none) continue;
    Storage& storage = storages_[trace_.tensors.storage[index_of(event.tensor)]];
    if (event.action == MemoryAction::allocate) {
      ++storage.lives;
      storage.taken = event.anchor == OpId::none ? 0 : column;
      storage.given_back = never;
      storage.block = event.bytes;
    } else if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed) {
      storage.given_back = std::min(storage.given_back, column);
    }
  }
}

void RecomputeIndex::index_uses() {
  first_use_.assign(trace_.ops.size() + 1, 0);
  for (const Use& use : trace_.uses) ++first_use_[index_of(use.op) + 1];
  for (std::size_t i = 0; i < trace_.ops.size(); ++i) first_use_[i + 1] += first_use_[i];
  for (const Use& use : trace_.uses) {
    if (!is_device_work(trace_.ops.kind[index_of(use.op)])) continue;
    const std::uint32_t storage = trace_.tensors.storage[index_of(use.tensor)];
    note_interruption(use.op, storages_[storage]);
    std::vector<Write>& writes = storages_[storage].writes;
    if (use.access != Access::write || (!writes.empty() && writes.back().op == use.op)) continue;
    bool reads = false;
    for (const Use& other : uses_of(use.op))
      reads |= other.access == Access::read && trace_.tensors.storage[index_of(other.tensor)] == storage;
    writes.push_back({position(use.op), use.op, reads});
  }
  for (Storage& storage : storages_)
    std::sort(storage.writes.begin(), storage.writes.end(),
              [](const Write& a, const Write& b) { return std::tie(a.position, a.op) < std::tie(b.position, b.op); });
}

std::span<const Use> RecomputeIndex::uses_of(OpId op) const {
  const std::size_t first = first_use_[index_of(op)];
  return std::span(trace_.uses).subspan(first, first_use_[index_of(op) + 1] - first);
}

void RecomputeIndex::note_interruption(OpId op, Storage& storage) const {
  if (storage.saved == no_saved) return;
  const SavedTensor& tensor = saved_[storage.saved];
  const std::size_t at = position(op);
  storage.is_interrupted |= at > position(tensor.last_forward) && at < position(tensor.first_backward);
}

bool RecomputeIndex::refuse(const std::string& what, const std::string& why) {
  refusal_ = what + ": " + why;
  return false;
}

bool RecomputeIndex::refuse(const Storage& storage, const std::string& why) {
  return refuse(std::string(trace_.strings.text(trace_.tensors.name[index_of(storage.tensor)])), why);
}

bool RecomputeIndex::is_there(const Storage& storage, std::size_t position, const Query& query) const {
  if (storage.lives == 0) return true;
  if (storage.lives > 1 || storage.taken >= position || storage.given_back < position) return false;
  if (storage.saved == no_saved) return true;
  const OpId back = (*query.away)[storage.saved];
  if (query.wanted.contains(storage.saved)) return false;
  return back == OpId::none || this->position(back) < position ||
         this->position(saved_[storage.saved].last_forward) >= position;
}

std::size_t RecomputeIndex::writes_before(const Storage& storage, std::size_t position) {
  const auto end = std::lower_bound(storage.writes.begin(), storage.writes.end(), position,
                                    [](const Write& write, std::size_t limit) { return write.position < limit; });
  return static_cast<std::size_t>(end - storage.writes.begin());
}

bool RecomputeIndex::can_run_again(OpId op) {
  const OpKind kind = trace_.ops.kind[index_of(op)];
  const auto refuse_op = [this, op](const char* why) {
    return refuse(std::string(trace_.strings.text(trace_.ops.name[index_of(op)])), why);
  };
  if (kind == OpKind::copy_host_to_device || kind == OpKind::copy_device_to_host || kind == OpKind::copy_peer)
    return refuse_op("moves data between the device and elsewhere");
  if (const Collective* collective = trace_.collective_of(op))
    if (collective->kind == CollectiveKind::send || collective->kind == CollectiveKind::receive)
      return refuse_op("another rank would have to send it again");
  return true;
}

// The first `writes` writes of a storage are done again, as a copy of it.
bool RecomputeIndex::rebuild(std::uint32_t number, std::size_t writes, Query& query) {
  const Storage& storage = storages_[number];
  if (storage.lives != 1 || writes == 0)
    return refuse(storage, "isn't in memory any more, and nothing in the trace recomputes it");
  if (storage.writes.front().reads) return refuse(storage, "its first writer changes what was there before");
  std::size_t& done = query.rebuilt[number];
  const auto needed = query.versions.find(number);
  if (needed != query.versions.end()) writes = std::max(writes, needed->second);
  while (done < writes) {
    const OpId op = storage.writes[done++].op;
    if (query.ops.insert(op).second) query.pending.push_back(op);
  }
  return true;
}

bool RecomputeIndex::read_again(OpId op, std::uint32_t number, Query& query) {
  const Storage& storage = storages_[number];
  const std::size_t version = writes_before(storage, position(op));
  std::size_t& expected = query.versions[number];
  expected = std::max(expected, version);
  const bool is_current = is_there(storage, query.position, query) && writes_before(storage, query.position) == version;
  if (!query.rebuilt.contains(number) && is_current) return true;
  return rebuild(number, version, query);
}

bool RecomputeIndex::write_again(OpId op, std::uint32_t number, Query& query) {
  const Storage& storage = storages_[number];
  const std::size_t version = writes_before(storage, position(op)) + 1;
  if (query.rebuilt.contains(number)) return rebuild(number, version, query);
  if (!is_there(storage, query.position, query)) return rebuild(number, version, query);
  // Written over with the same, which no framework does in place: a copy of it that goes again.
  if (!storage.writes[version - 1].reads && (storage.lives == 1 || writes_before(storage, query.position) == version))
    return true;
  return refuse(storage, "would be changed a second time");
}

bool RecomputeIndex::run_again(OpId op, Query& query) {
  if (!can_run_again(op)) return false;
  for (const Use& use : uses_of(op)) {
    const std::uint32_t storage = trace_.tensors.storage[index_of(use.tensor)];
    if (use.access == Access::read ? !read_again(op, storage, query) : !write_again(op, storage, query)) return false;
  }
  return true;
}

bool RecomputeIndex::close(Query& query) {
  while (!query.pending.empty()) {
    const OpId op = query.pending.back();
    query.pending.pop_back();
    if (!run_again(op, query)) return false;
  }
  return true;
}

std::optional<RecomputeGroup> RecomputeIndex::group(std::span<const std::size_t> tensors, const AwayUntil& away,
                                                    OpId before) {
  SPILLWAY_ASSERT(!tensors.empty() && away.size() == saved_.size());
  RecomputeGroup group{before, {}, {tensors.begin(), tensors.end()}, {}, {}};
  std::sort(group.tensors.begin(), group.tensors.end());
  for (const std::size_t t : group.tensors)
    if (group.before == OpId::none || position(saved_[t].first_backward) < position(group.before))
      group.before = saved_[t].first_backward;
  Query query;
  query.position = position(group.before);
  query.away = &away;
  query.wanted.insert(group.tensors.begin(), group.tensors.end());
  for (const std::size_t t : group.tensors) {
    const Storage& storage = storages_[saved_[t].storage];
    if (storage.is_interrupted) {
      refuse(storage, "is used between its last forward and its first backward use");
      return std::nullopt;
    }
    if (!rebuild(saved_[t].storage, writes_before(storage, position(saved_[t].last_forward) + 1), query))
      return std::nullopt;
  }
  if (!close(query)) return std::nullopt;
  group.ops.assign(query.ops.begin(), query.ops.end());
  std::sort(group.ops.begin(), group.ops.end(),
            [this](OpId a, OpId b) { return std::pair(position(a), a) < std::pair(position(b), b); });
  for (const OpId op : group.ops)
    if (const Picos duration = trace_.ops.duration[index_of(op)]; duration != unknown_time) group.time += duration;
  group.temporary = most_temporary(query, group.ops);
  return group;
}

Bytes RecomputeIndex::most_temporary(const Query& query, std::span<const OpId> ops) const {
  struct Span {
    std::size_t first = 0, last = 0;
  };
  std::map<std::uint32_t, Span> spans;
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const Use& use : uses_of(ops[i])) {
      const std::uint32_t storage = trace_.tensors.storage[index_of(use.tensor)];
      const auto found = spans.find(storage);
      if (found != spans.end())
        found->second.last = i;
      else if (use.access == Access::write && storages_[storage].lives > 0 &&
               !query.wanted.contains(storages_[storage].saved))
        spans[storage] = {i, i};
    }
  std::vector<Bytes> change(ops.size() + 1);
  for (const auto& [storage, span] : spans) {
    change[span.first] += storages_[storage].block;
    change[span.last + 1] = change[span.last + 1] - storages_[storage].block;
  }
  Bytes held{}, most{};
  for (const Bytes bytes : change) {
    held += bytes;
    most = std::max(most, held);
  }
  return most;
}

std::vector<RecomputeGroup> RecomputeIndex::groups(AwayUntil& away) {
  for (;;) {
    std::map<std::pair<std::size_t, OpId>, std::vector<std::size_t>> by_time;
    for (std::size_t t = 0; t < away.size(); ++t)
      if (away[t] != OpId::none) by_time[{position(away[t]), away[t]}].push_back(t);
    std::vector<RecomputeGroup> result;
    bool refused = false;
    for (const auto& [when, tensors] : by_time) {
      if (std::optional<RecomputeGroup> together = group(tensors, away, when.second)) {
        result.push_back(std::move(*together));
        continue;
      }
      std::size_t stays = 0;
      for (const std::size_t t : tensors) {
        if (group(std::span(&t, 1), away, when.second)) continue;
        away[t] = OpId::none;
        ++stays;
      }
      if (stays == 0)
        for (const std::size_t t : tensors) away[t] = OpId::none;
      refused = true;
    }
    if (refused) continue;
    std::sort(result.begin(), result.end(),
              [](const RecomputeGroup& a, const RecomputeGroup& b) { return a.before < b.before; });
    return result;
  }
}

void add_to_plan(const RecomputeGroup& group, const RecomputeIndex& index, OffloadPlan& plan) {
  for (const std::size_t t : group.tensors) {
    const SavedTensor& tensor = index.saved()[t];
    plan.absences.push_back({tensor.tensor, Tier::recompute, OpId::none, tensor.last_forward,
                             group.before == tensor.first_backward ? OpId::none : group.before, tensor.first_backward,
                             false});
  }
  const auto at = std::lower_bound(plan.recomputations.begin(), plan.recomputations.end(), group.before,
                                   [](const Recomputation& r, OpId before) { return r.before < before; });
  if (at == plan.recomputations.end() || at->before != group.before) {
    plan.recomputations.insert(at, {group.before, group.ops});
    return;
  }
  std::vector<OpId> both;
  std::set_union(
      at->ops.begin(), at->ops.end(), group.ops.begin(), group.ops.end(), std::back_inserter(both),
      [&index](OpId a, OpId b) { return std::pair(index.position(a), a) < std::pair(index.position(b), b); });
  at->ops = std::move(both);
}

}  // namespace spillway::planners
