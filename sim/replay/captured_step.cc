#include "sim/replay/captured_step.h"

#include <algorithm>
#include <array>
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
    return with_memory_from_uses(trace);
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
