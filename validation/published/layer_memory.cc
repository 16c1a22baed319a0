#include "validation/published/layer_memory.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::validation {
namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

// First and last op that touches a tensor.
struct Span {
  std::size_t first = never, last = 0;
};

using MicroBatch = std::pair<std::uint16_t, std::uint16_t>;  // rank and number

MicroBatch micro_batch_of(const Trace& trace, std::size_t op) {
  return {trace.lanes[index_of(trace.ops.lane[op])].rank, trace.ops.micro_batch[op]};
}

std::vector<Span> spans_of(const Trace& trace) {
  std::vector<Span> spans(trace.tensors.size());
  for (const Use& use : trace.uses) {
    Span& span = spans[index_of(use.tensor)];
    span.first = std::min(span.first, index_of(use.op));
    span.last = std::max(span.last, index_of(use.op));
  }
  return spans;
}

std::map<MicroBatch, std::size_t> first_backwards(const Trace& trace) {
  std::map<MicroBatch, std::size_t> first;
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    const Phase phase = trace.ops.phase[op];
    if (phase == Phase::backward || phase == Phase::recompute) first.emplace(micro_batch_of(trace, op), op);
  }
  return first;
}

std::vector<bool> kept_tensors(const Trace& trace) {
  const std::vector<Span> spans = spans_of(trace);
  const std::map<MicroBatch, std::size_t> backwards = first_backwards(trace);
  std::vector<bool> kept(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    if (span.first == never || trace.tensors.role[i] != TensorRole::activation) continue;
    const auto backward = backwards.find(micro_batch_of(trace, span.first));
    kept[i] = backward != backwards.end() && span.first < backward->second && span.last >= backward->second &&
              trace.ops.layer[span.last] != no_index16;
  }
  return kept;
}

bool is_state(TensorRole role) {
  return role == TensorRole::weight || role == TensorRole::gradient || role == TensorRole::optimizer_state;
}

}  // namespace

double most_kept_by_layers(const Trace& trace) {
  const std::vector<bool> kept = kept_tensors(trace);
  std::map<std::int16_t, std::int64_t> held;  // by device
  std::int64_t most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.tensor == TensorId::none || !kept[index_of(event.tensor)]) continue;
    std::int64_t& now = held[event.device];
    if (event.action == MemoryAction::allocate) most = std::max(most, now += event.bytes.count());
    if (event.action == MemoryAction::free_requested) now -= event.bytes.count();
  }
  return static_cast<double>(most);
}

double state_of_layers(const Trace& trace) {
  std::map<std::int16_t, double> held;  // by device
  for (const MemoryEvent& event : trace.memory_events) {
    const bool is_named = event.action == MemoryAction::allocate && event.tensor != TensorId::none;
    if (!is_named || event.anchor != OpId::none) continue;
    double& mine = held[event.device];
    const std::size_t tensor = index_of(event.tensor);
    const std::string_view name = trace.strings.text(trace.tensors.name[tensor]);
    if (is_state(trace.tensors.role[tensor]) && name.starts_with("layers."))
      mine += static_cast<double>(event.bytes.count());
  }
  double sum = 0;
  for (const auto& [device, bytes] : held) sum += bytes;
  return held.empty() ? 0 : sum / static_cast<double>(held.size());
}

}  // namespace spillway::validation
