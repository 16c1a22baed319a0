#include "sim/replay/captured_step.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "sim/replay/order_plan.h"
#include "traces/host_order.h"
#include "traces/infer_uses.h"
#include "traces/reorder_ops.h"

namespace spillway::sim {
namespace {

// In its own order: a plan that changes nothing else.
Trace with_memory_from_uses(const Trace& trace) {
  Trace made = reordered(trace, program_order(trace));
  infer_passes(made);
  return made;
}

// Most that is alive on a GPU at once by the trace's own events.
Bytes peak_of_events(const Trace& trace) {
  std::map<std::pair<std::int16_t, Addr>, Bytes> live;
  std::map<std::int16_t, Bytes> sums;
  Bytes peak{};
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0) continue;
    Bytes& sum = sums[event.device];
    const std::pair key(event.device, event.address);
    if (event.action == MemoryAction::allocate) {
      live[key] = event.bytes;
      sum += event.bytes;
      peak = std::max(peak, sum);
    } else if (const auto freed = live.find(key); event.action == MemoryAction::free_requested && freed != live.end()) {
      sum = sum - freed->second;
      live.erase(freed);
    }
  }
  return peak;
}

// What was alive before the capture is in neither.
constexpr double most_held_too_long = 1.25;
bool hold_too_much(const Trace& from_uses, const Trace& trace) {
  return static_cast<double>(peak_of_events(from_uses).count()) >
         most_held_too_long * static_cast<double>(peak_of_events(trace).count());
}

}  // namespace

bool ties_uses_to_memory(const Trace& trace) {
  return trace.has(Capability::uses) &&
         std::any_of(trace.memory_events.begin(), trace.memory_events.end(),
                     [](const MemoryEvent& event) { return event.tensor != TensorId::none; });
}

Trace captured_step(Trace trace, std::string_view purpose, bool wants_recorded_uses) {
  if (ties_uses_to_memory(trace)) return trace;
  if (std::none_of(trace.ops.kind.begin(), trace.ops.kind.end(), is_device_work))
    throw InputError(trace.provenance.empty() ? "" : trace.provenance.front().file, "ops", "there is no GPU work in it",
                     "capture a step that runs on a GPU");
  constexpr std::array with_uses = {Capability::times, Capability::phases};
  constexpr std::array without_uses = {Capability::times, Capability::memory, Capability::phases};
  const bool knows_memory = trace.has(Capability::memory) && trace.has(Capability::phases);
  if (trace.has(Capability::uses) && (wants_recorded_uses || !knows_memory)) {
    trace.require(with_uses, purpose);
    Trace made = with_memory_from_uses(trace);
    if (!knows_memory || !hold_too_much(made, trace)) return made;
    trace.note("uses_hold_too_much", "",
               "by the ExecutionTrace's uses tensors live so long that the step would hold over 1.25 times what its "
               "memory events say: those are gone, and nothing can be recomputed",
               false);
  }
  trace.require(without_uses, purpose);
  if (trace.has(Capability::uses))
    infer_uses_instead(trace);
  else
    infer_uses(trace);
  const std::vector<OpId> order = host_order(trace);
  return with_ops_in(std::move(trace), order);
}

}  // namespace spillway::sim
