#include "traces/trace.h"

#include <algorithm>

#include "base/input_error.h"
#include "traces/lane_index.h"

namespace spillway::traces {
namespace {

constexpr std::array<std::string_view, op_kind_count> op_kind_names = {"launch",
                                                                       "device_sync",
                                                                       "stream_sync",
                                                                       "event_sync",
                                                                       "event_record",
                                                                       "stream_wait",
                                                                       "device_malloc",
                                                                       "device_free",
                                                                       "host_work",
                                                                       "kernel",
                                                                       "copy_host_to_device",
                                                                       "copy_device_to_host",
                                                                       "copy_device_to_device",
                                                                       "copy_peer",
                                                                       "memset",
                                                                       "collective",
                                                                       "storage_read",
                                                                       "storage_write"};
constexpr std::array<std::string_view, phase_count> phase_names = {"unknown",   "forward",       "backward",
                                                                   "optimizer", "communication", "recompute"};
constexpr std::array<std::string_view, capability_count> capability_names = {"times", "memory", "uses", "edges",
                                                                             "phases"};
constexpr std::array<std::string_view, 4> lane_kind_names = {"host_thread", "stream", "communication", "storage"};
constexpr std::array<std::string_view, 8> tensor_role_names = {"unknown",    "weight",    "gradient", "optimizer_state",
                                                               "activation", "temporary", "buffer",   "input"};
constexpr std::array<std::string_view, 9> memory_action_names = {
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "oom",   "snapshot"};
constexpr std::array<std::string_view, 10> collective_kind_names = {
    "unknown", "all_reduce", "all_gather", "reduce_scatter", "broadcast",
    "reduce",  "all_to_all", "send",       "receive",        "barrier"};
constexpr std::array<std::string_view, capability_count> capability_recipes = {
    "a Kineto trace (torch.profiler with ProfilerActivity.CUDA) or an Nsight Systems export has them",
    "torch.profiler(profile_memory=True) or torch.cuda.memory._dump_snapshot() records them",
    "torch.profiler.ExecutionTraceObserver records them; join it with the Kineto trace of the same step",
    "torch.profiler.ExecutionTraceObserver or a generated trace has them",
    "annotate with torch.profiler.record_function('## forward ##') or profile a step with backward and optimizer"};

template <class Id>
constexpr std::string_view name_at(std::span<const std::string_view> names, Id value) {
  return names[static_cast<std::size_t>(value)];
}

constexpr std::uint8_t bit(Capability capability) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(capability));
}

template <class Rows>
auto find_by_op(const Rows& rows, OpId op) -> decltype(rows.data()) {
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), op, [](const auto& row, OpId wanted) { return row.op < wanted; });
  return found != rows.end() && found->op == op ? &*found : nullptr;
}

}  // namespace

std::string_view to_string(OpKind kind) { return name_at(op_kind_names, kind); }
std::string_view to_string(Phase phase) { return name_at(phase_names, phase); }
std::string_view to_string(Capability capability) { return name_at(capability_names, capability); }
std::string_view to_string(LaneKind kind) { return name_at(lane_kind_names, kind); }
std::string_view to_string(TensorRole role) { return name_at(tensor_role_names, role); }
std::string_view to_string(MemoryAction action) { return name_at(memory_action_names, action); }
std::string_view to_string(CollectiveKind kind) { return name_at(collective_kind_names, kind); }

void Ops::reserve(std::size_t count) {
  name.reserve(count);
  kind.reserve(count);
  phase.reserve(count);
  lane.reserve(count);
  layer.reserve(count);
  micro_batch.reserve(count);
  step.reserve(count);
  flags.reserve(count);
  start.reserve(count);
  duration.reserve(count);
  launched_by.reserve(count);
  span.reserve(count);
  bytes.reserve(count);
  flops.reserve(count);
}

bool Trace::has(Capability capability) const { return (capabilities_ & bit(capability)) != 0; }
bool Trace::is_inferred(Capability capability) const { return (inferred_ & bit(capability)) != 0; }

void Trace::set(Capability capability, bool inferred) {
  capabilities_ |= bit(capability);
  if (inferred) inferred_ |= bit(capability);
}

void Trace::require(std::span<const Capability> needed, std::string_view purpose) const {
  std::string missing, recipe;
  for (const Capability capability : needed) {
    if (has(capability)) continue;
    missing += (missing.empty() ? "" : ", ") + std::string(to_string(capability));
    recipe += (recipe.empty() ? "" : "; ") + std::string(name_at(capability_recipes, capability));
  }
  if (missing.empty()) return;
  if (!has(Capability::times) && has(Capability::memory))
    recipe += "; `spillway memory` and `spillway explain` read what its allocator did";
  throw InputError(provenance.empty() ? "" : provenance.front().file, "",
                   std::string(purpose) + " needs what this trace does not have: " + missing, recipe);
}

OpId Trace::append_op(const OpRow& row) {
  SPILLWAY_ASSERT(ops.size() < index_of(OpId::none));
  const OpId id{static_cast<std::uint32_t>(ops.size())};
  ops.name.push_back(row.name);
  ops.kind.push_back(row.kind);
  ops.phase.push_back(row.phase);
  ops.lane.push_back(row.lane);
  ops.layer.push_back(row.layer);
  ops.micro_batch.push_back(row.micro_batch);
  ops.step.push_back(row.step);
  ops.flags.push_back(row.flags);
  ops.start.push_back(row.start);
  ops.duration.push_back(row.duration);
  ops.launched_by.push_back(row.launched_by);
  ops.span.push_back(row.span);
  ops.bytes.push_back(row.bytes);
  ops.flops.push_back(row.flops);
  return id;
}

OpRow Trace::op(OpId id) const {
  const std::size_t i = index_of(id);
  SPILLWAY_ASSERT(i < ops.size());
  return {.name = ops.name[i],
          .kind = ops.kind[i],
          .phase = ops.phase[i],
          .lane = ops.lane[i],
          .layer = ops.layer[i],
          .micro_batch = ops.micro_batch[i],
          .step = ops.step[i],
          .flags = ops.flags[i],
          .start = ops.start[i],
          .duration = ops.duration[i],
          .launched_by = ops.launched_by[i],
          .span = ops.span[i],
          .bytes = ops.bytes[i],
          .flops = ops.flops[i]};
}

LaneId Trace::lane(const Lane& wanted) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const Lane& lane = lanes[i];
    if (lane.kind == wanted.kind && lane.rank == wanted.rank && lane.device == wanted.device &&
        lane.number == wanted.number)
      return LaneId(static_cast<std::uint16_t>(i));
  }
  return append_lane(*this, wanted);
}

void Trace::note(std::string_view kind, std::string_view example, std::string_view remedy, bool is_error) {
  auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.kind == kind; });
  if (found == findings.end()) {
    findings.push_back({.kind = std::string(kind), .remedy = std::string(remedy), .is_error = is_error});
    found = findings.end() - 1;
  }
  ++found->count;
  if (found->examples.size() < finding_examples && !example.empty()) found->examples.emplace_back(example);
}

const Finding* Trace::finding(std::string_view kind) const {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.kind == kind; });
  return found == findings.end() ? nullptr : &*found;
}

const Sync* Trace::sync_of(OpId op) const { return find_by_op(syncs, op); }
const Collective* Trace::collective_of(OpId op) const { return find_by_op(collectives, op); }
Picos Trace::unexplained_wait_of(OpId op) const {
  const UnexplainedWait* wait = find_by_op(unexplained_waits, op);
  return wait == nullptr ? Picos(0) : wait->time;
}

void Trace::check_invariants() const {
  const std::size_t n = ops.size();
  SPILLWAY_ASSERT(ops.name.size() == n && ops.phase.size() == n && ops.lane.size() == n && ops.layer.size() == n);
  SPILLWAY_ASSERT(ops.micro_batch.size() == n && ops.step.size() == n && ops.flags.size() == n);
  SPILLWAY_ASSERT(ops.start.size() == n && ops.duration.size() == n && ops.launched_by.size() == n);
  SPILLWAY_ASSERT(ops.span.size() == n && ops.bytes.size() == n && ops.flops.size() == n);
  const auto valid_op = [&](OpId op) { return op == OpId::none || index_of(op) < n; };
  for (std::size_t i = 0; i < n; ++i) {
    SPILLWAY_ASSERT(index_of(ops.lane[i]) < lanes.size());
    SPILLWAY_ASSERT(valid_op(ops.launched_by[i]));
    SPILLWAY_ASSERT(ops.duration[i] == unknown_time || ops.duration[i] >= Picos(0));
    SPILLWAY_ASSERT(ops.step[i] == no_index16 || ops.step[i] < steps.size());
    SPILLWAY_ASSERT(ops.span[i] == SpanId::none || index_of(ops.span[i]) < spans.size());
  }
  const std::size_t t = tensors.size();
  SPILLWAY_ASSERT(tensors.name.size() == t && tensors.storage.size() == t && tensors.role.size() == t);
  for (const Use& use : uses) SPILLWAY_ASSERT(index_of(use.op) < n && index_of(use.tensor) < t);
  for (const Edge& edge : edges) SPILLWAY_ASSERT(index_of(edge.from) < n && index_of(edge.to) < n);
  for (const StartUpEvent& event : start_up)
    SPILLWAY_ASSERT(event.tensor == TensorId::none || index_of(event.tensor) < tensors.size());
  for (const Edge& edge : carried) SPILLWAY_ASSERT(index_of(edge.from) < n && index_of(edge.to) < n);
  for (const Sync& sync : syncs) SPILLWAY_ASSERT(index_of(sync.op) < n && valid_op(sync.event));
  for (const Collective& c : collectives) SPILLWAY_ASSERT(index_of(c.op) < n);
  for (const MemoryEvent& e : memory_events) SPILLWAY_ASSERT(valid_op(e.anchor));
  for (const MemorySegment& s : memory_segments)
    SPILLWAY_ASSERT(std::size_t{s.first_block} + s.block_count <= memory_blocks.size());
}

}  // namespace spillway::traces
