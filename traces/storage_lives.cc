#include "traces/storage_lives.h"

#include <algorithm>
#include <span>

#include "base/input_error.h"
#include "traces/host_order.h"

namespace spillway::traces {
namespace {

void take_events(const Trace& trace, std::vector<StorageLife>& storages) {
  for (std::size_t e = 0; e < trace.memory_events.size(); ++e) {
    const MemoryEvent& event = trace.memory_events[e];
    if (event.tensor == TensorId::none) continue;
    StorageLife& life = storages[trace.tensors.storage[index_of(event.tensor)]];
    if (event.action == MemoryAction::allocate) {
      if (life.allocation != StorageLife::no_event)
        throw InputError(
            trace.provenance.empty() ? "" : trace.provenance.front().file, "memory event " + std::to_string(e),
            "the memory of tensor '" + std::string(trace.strings.text(trace.tensors.name[index_of(event.tensor)])) +
                "' is allocated twice",
            "give each allocation its own tensor");
      life.allocation = static_cast<std::uint32_t>(e);
      life.bytes = event.bytes;
      life.device = event.device;
      life.initial = event.anchor == OpId::none;
    } else if (event.action == MemoryAction::free_requested || event.action == MemoryAction::free_completed) {
      if (life.release == StorageLife::no_event) life.release = static_cast<std::uint32_t>(e);
      life.released = true;
    }
  }
}

// An optimizer's first step makes its state out of nothing.
bool is_state_made(const Trace& trace, OpId op, std::span<const Use> uses) {
  return trace.ops.phase[index_of(op)] == Phase::optimizer &&
         std::none_of(uses.begin(), uses.end(), [](const Use& use) { return use.access == Access::read; });
}

void deduce(const Trace& trace, std::vector<StorageLife>& storages) {
  std::vector<std::uint32_t> first_use(trace.ops.size() + 1, 0);
  for (const Use& use : trace.uses) ++first_use[index_of(use.op) + 1];
  for (std::size_t i = 0; i < trace.ops.size(); ++i) first_use[i + 1] += first_use[i];
  std::vector<bool> met(storages.size(), false), placed(storages.size(), false), held(storages.size(), false);
  for (const OpId op : host_order(trace)) {
    const std::size_t i = index_of(op);
    const std::span<const Use> uses{trace.uses.data() + first_use[i], first_use[i + 1] - first_use[i]};
    for (const Access access : {Access::read, Access::write}) {
      for (const Use& use : uses) {
        if (use.access != access) continue;
        const std::uint32_t s = trace.tensors.storage[index_of(use.tensor)];
        if (!met[s]) {
          storages[s].initial = access == Access::read;
          held[s] = is_state_made(trace, op, uses);
        }
        met[s] = true;
        if (!is_device_work(trace.ops.kind[i]) || placed[s]) continue;
        storages[s].device = trace.lanes[index_of(trace.ops.lane[i])].device;
        placed[s] = true;
      }
    }
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const std::uint32_t life_of = trace.tensors.storage[t];
    StorageLife& life = storages[life_of];
    life.bytes = std::max(life.bytes, trace.tensors.bytes[t]);
    const TensorRole role = trace.tensors.role[t];
    if (role == TensorRole::weight || role == TensorRole::optimizer_state || role == TensorRole::buffer)
      held[life_of] = true;
  }
  for (std::size_t s = 0; s < storages.size(); ++s) storages[s].released = !storages[s].initial && !held[s];
}

}  // namespace

StorageLives storage_lives(const Trace& trace) {
  StorageLives lives;
  std::uint32_t count = 0;
  for (const std::uint32_t storage : trace.tensors.storage) count = std::max(count, storage + 1);
  lives.storages.resize(count);
  for (std::size_t t = trace.tensors.size(); t-- > 0;)
    lives.storages[trace.tensors.storage[t]].tensor = TensorId(static_cast<std::uint32_t>(t));
  for (const Use& use : trace.uses) lives.storages[trace.tensors.storage[index_of(use.tensor)]].used = true;
  lives.from_events = std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                                  [](const MemoryEvent& event) { return event.tensor != TensorId::none; });
  if (lives.from_events)
    take_events(trace, lives.storages);
  else
    deduce(trace, lives.storages);
  return lives;
}

}  // namespace spillway::traces
