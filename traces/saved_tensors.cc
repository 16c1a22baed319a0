#include "traces/saved_tensors.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "traces/dtype.h"

namespace spillway::traces {
namespace {

struct Uses {
  OpId written_by = OpId::none, last_forward = OpId::none, first_backward = OpId::none, last_backward = OpId::none;
  bool is_allocated = false, is_candidate = false;
  Bytes bytes{};
  TensorId largest = TensorId::none;
};

bool is_state(TensorRole role) {
  return role == TensorRole::weight || role == TensorRole::gradient || role == TensorRole::optimizer_state ||
         role == TensorRole::buffer || role == TensorRole::input;
}

// Between two ranks: what a pipeline hands on is its stages' to keep.
bool is_point_to_point(const Trace& trace, OpId op) {
  const Collective* collective = trace.collective_of(op);
  return collective != nullptr &&
         (collective->kind == CollectiveKind::send || collective->kind == CollectiveKind::receive);
}

// By op: its phase; of a collective that of the first op behind it that uses what it made: an all-gather in front of a
// weight's gradient is part of the backward. Phase::communication where nothing does, and between two ranks. O(uses).
std::vector<Phase> phases_of_passes(const Trace& trace, std::uint32_t storages) {
  std::vector<Phase> phases = trace.ops.phase;
  std::vector<Phase> used_in(storages, Phase::communication);  // next, from the back
  for (std::size_t last = trace.uses.size(); last > 0;) {
    std::size_t first = last - 1;
    while (first > 0 && trace.uses[first - 1].op == trace.uses[last - 1].op) --first;
    const std::span<const Use> uses = std::span(trace.uses).subspan(first, last - first);
    last = first;
    const std::size_t op = index_of(uses.front().op);
    if (!is_device_work(trace.ops.kind[op])) continue;
    const auto storage = [&](const Use& use) { return trace.tensors.storage[index_of(use.tensor)]; };
    Phase& phase = phases[op];
    if (phase == Phase::communication && !is_point_to_point(trace, uses.front().op))
      for (const Use& use : uses)
        if (use.access == Access::write && phase == Phase::communication) phase = used_in[storage(use)];
    if (phase == Phase::communication) continue;
    for (const Use& use : uses) used_in[storage(use)] = phase;
  }
  return phases;
}

}  // namespace

std::vector<SavedTensor> saved_tensors(const Trace& trace) {
  constexpr std::array needed = {Capability::memory, Capability::uses, Capability::phases};
  trace.require(needed, "planning what the forward keeps");
  std::uint32_t count = 0;
  for (const std::uint32_t storage : trace.tensors.storage) count = std::max(count, storage + 1);
  std::vector<Uses> storages(count);
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action != MemoryAction::allocate || event.tensor == TensorId::none || event.anchor == OpId::none)
      continue;
    Uses& uses = storages[trace.tensors.storage[index_of(event.tensor)]];
    uses.is_candidate = !uses.is_allocated;  // a storage with two lives is two tensors
    uses.is_allocated = true;
    uses.bytes = event.bytes;
  }
  const std::vector<Phase> phases = phases_of_passes(trace, count);
  for (const Use& use : trace.uses) {
    const std::size_t tensor = index_of(use.tensor), op = index_of(use.op);
    Uses& uses = storages[trace.tensors.storage[tensor]];
    if (!uses.is_candidate || !is_device_work(trace.ops.kind[op])) continue;
    if (is_state(trace.tensors.role[tensor])) uses.is_candidate = false;
    if (uses.largest == TensorId::none || trace.tensors.bytes[tensor] > trace.tensors.bytes[index_of(uses.largest)])
      uses.largest = use.tensor;
    const Phase phase = phases[op];
    if (phase == Phase::forward && uses.first_backward == OpId::none) {
      uses.last_forward = use.op;
      if (use.access == Access::write) uses.written_by = use.op;
    } else if (phase == Phase::backward || phase == Phase::recompute) {
      if (uses.first_backward == OpId::none) uses.first_backward = use.op;
      uses.last_backward = use.op;
    }
  }
  std::vector<SavedTensor> saved;
  for (std::uint32_t storage = 0; storage < count; ++storage) {
    const Uses& uses = storages[storage];
    if (!uses.is_candidate || uses.written_by == OpId::none || uses.first_backward == OpId::none) continue;
    const std::size_t op = index_of(uses.first_backward);
    const std::size_t tensor = index_of(uses.largest);
    const std::int64_t element = element_bytes(trace.strings.text(trace.tensors.dtype[tensor]));
    saved.push_back({uses.largest, storage, uses.bytes,
                     element == 0 ? 0 : trace.tensors.bytes[tensor].count() / element, uses.written_by,
                     uses.last_forward, uses.first_backward, uses.last_backward,
                     trace.lanes[index_of(trace.ops.lane[op])].rank, trace.ops.micro_batch[op], trace.ops.layer[op]});
  }
  std::sort(saved.begin(), saved.end(), [](const SavedTensor& a, const SavedTensor& b) {
    return std::pair(a.written_by, a.storage) < std::pair(b.written_by, b.storage);
  });
  return saved;
}

bool names_layers(const Trace& trace) {
  return std::any_of(trace.ops.layer.begin(), trace.ops.layer.end(),
                     [](std::uint16_t layer) { return layer != no_index16; });
}

std::string module_of(const Trace& trace, OpId op, std::size_t parts) {
  auto use = std::lower_bound(trace.uses.begin(), trace.uses.end(), op,
                              [](const Use& u, OpId wanted) { return u.op < wanted; });
  for (; use != trace.uses.end() && use->op == op; ++use) {
    if (use->access != Access::write) continue;
    const std::string_view name = trace.strings.text(trace.tensors.name[index_of(use->tensor)]);
    std::size_t end = 0, seen = 0;
    while (seen < parts) {
      end = name.find('.', end == 0 ? 0 : end + 1);
      if (end == std::string_view::npos) return "";
      ++seen;
    }
    return std::string(name.substr(0, end));
  }
  return "";
}

}  // namespace spillway::traces
