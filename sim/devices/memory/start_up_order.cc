#include "sim/devices/memory/start_up_order.h"

#include <algorithm>

#include "base/address_map.h"

namespace spillway::sim {
namespace {

// What a program makes for an op is behind the call before that op's.
std::size_t call_before(const Trace& trace, std::size_t call) {
  if (call >= trace.ops.size()) return call;
  for (std::size_t i = call; i-- > 0;)
    if (trace.ops.lane[i] == trace.ops.lane[call]) return i;
  return call;
}

}  // namespace

bool has_start_up(const Trace& trace, std::int16_t device) {
  return std::any_of(trace.start_up.begin(), trace.start_up.end(),
                     [device](const StartUpEvent& event) { return event.device == device; });
}

bool is_of_evaluation(const StartUpEvent& event) { return event.late && event.tensor == TensorId::none; }
bool is_size_before(const StartUpEvent& event) {
  return event.late && event.tensor != TensorId::none && !event.allocates;
}

std::optional<std::vector<bool>> initial_events(const Trace& trace, const EventIndex& events) {
  AddressMap<std::size_t> first;
  std::vector<bool> initial(events.size(), false);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const MemoryEvent& event = trace.memory_events[events[i]];
    if (event.anchor == OpId::none && event.action == MemoryAction::allocate && event.tensor != TensorId::none) {
      first[event.address.count()] = i;
      initial[i] = true;
      continue;
    }
    const std::optional<std::size_t> found = first.take(event.address.count());
    if (!found) continue;
    const TensorRole role = trace.tensors.role[index_of(trace.memory_events[events[*found]].tensor)];
    const bool of_step = role == TensorRole::input || role == TensorRole::activation || role == TensorRole::temporary;
    if (!of_step) return std::nullopt;
    initial[*found] = false;
  }
  return initial;
}

std::vector<bool> order_late_events(const Trace& trace, std::vector<LateEvent>& late) {
  if (late.empty()) return {};
  std::vector<bool> of_late(trace.tensors.size(), false);
  std::size_t first_tensor = trace.tensors.size(), last_tensor = 0;
  for (const LateEvent& one : late) {
    const std::size_t tensor = index_of(one.event->tensor);
    of_late[tensor] = true;
    first_tensor = std::min(first_tensor, tensor), last_tensor = std::max(last_tensor, tensor);
  }
  std::vector<std::size_t> launch(trace.tensors.size(), trace.ops.size());
  for (const Use& use : trace.uses) {
    const std::size_t tensor = index_of(use.tensor);
    if (tensor - first_tensor > last_tensor - first_tensor || !of_late[tensor]) continue;  // another device's, mostly
    const OpId by = trace.ops.launched_by[index_of(use.op)];
    std::size_t& first = launch[tensor];
    first = std::min(first, index_of(by == OpId::none ? use.op : by));
  }
  for (LateEvent& one : late) one.launch = call_before(trace, launch[index_of(one.event->tensor)]);
  std::stable_sort(late.begin(), late.end(),
                   [](const LateEvent& a, const LateEvent& b) { return a.launch < b.launch; });
  return of_late;
}

}  // namespace spillway::sim
