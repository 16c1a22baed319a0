#include "traces/tensor_roles.h"

#include <algorithm>
#include <vector>

namespace spillway::traces {
namespace {

struct StorageHistory {
  bool seen = false;
  bool made_here = false;  // the first use is a write
  Phase made_in = Phase::unknown;
  bool in_forward = false, in_backward = false, in_optimizer = false;
};

TensorRole role_of(const StorageHistory& h) {
  if (!h.seen) return TensorRole::unknown;
  if (!h.made_here) {
    if (!h.in_optimizer) return TensorRole::input;
    return h.in_forward || h.in_backward ? TensorRole::weight : TensorRole::optimizer_state;
  }
  if (h.made_in == Phase::forward && h.in_backward) return TensorRole::activation;
  if (h.made_in == Phase::backward && h.in_optimizer) return TensorRole::gradient;
  return TensorRole::temporary;
}

}  // namespace

void infer_tensor_roles(Trace& trace) {
  const auto& phases = trace.ops.phase;
  const bool training =
      std::any_of(phases.begin(), phases.end(), [](Phase p) { return p == Phase::backward || p == Phase::optimizer; });
  if (!training || trace.tensors.size() == 0) return;
  std::uint32_t storages = 0;
  for (const std::uint32_t storage : trace.tensors.storage) storages = std::max(storages, storage + 1);
  std::vector<StorageHistory> history(storages);
  for (const Use& use : trace.uses) {
    StorageHistory& h = history[trace.tensors.storage[index_of(use.tensor)]];
    const Phase phase = phases[index_of(use.op)];
    if (!h.seen) {
      h.seen = true;
      h.made_here = use.access == Access::write;
      h.made_in = phase;
    }
    h.in_forward |= phase == Phase::forward;
    h.in_backward |= phase == Phase::backward;
    h.in_optimizer |= phase == Phase::optimizer;
  }
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.tensors.role[i] == TensorRole::unknown)
      trace.tensors.role[i] = role_of(history[trace.tensors.storage[i]]);
}

}  // namespace spillway::traces
