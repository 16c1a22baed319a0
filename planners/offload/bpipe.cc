#include "planners/offload/bpipe.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/input_error.h"

namespace spillway::planners {
namespace {

using DirectedPass = std::tuple<std::uint16_t, std::uint16_t, bool>;  // rank, micro-batch, forward

DirectedPass key_of(std::size_t rank, const PipelineOp& op) {
  return {static_cast<std::uint16_t>(rank), static_cast<std::uint16_t>(op.pass.micro_batch),
          op.kind == PipelineOpKind::forward};
}

// The first kernel of each pass through a layer.
std::map<DirectedPass, OpId> first_kernels(const Trace& trace) {
  std::map<DirectedPass, OpId> first;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.kind[i] != OpKind::kernel || trace.ops.micro_batch[i] == no_index16) continue;
    const std::uint16_t rank = trace.lanes[index_of(trace.ops.lane[i])].rank;
    first.try_emplace({rank, trace.ops.micro_batch[i], trace.ops.phase[i] == Phase::forward},
                      OpId(static_cast<std::uint32_t>(i)));
  }
  return first;
}

// When what a stage evicts of a micro-batch is asked for.
std::map<std::pair<std::size_t, std::int32_t>, OpId> reloads(const Trace& trace, const PipelinePlan& plan) {
  const std::map<DirectedPass, OpId> first = first_kernels(trace);
  std::map<std::pair<std::size_t, std::int32_t>, OpId> asked;
  for (std::size_t d = 0; d < plan.copies.size(); ++d) {
    for (const PipelineOp& copy : plan.copies[d]) {
      if (copy.kind != PipelineOpKind::reload) continue;
      const auto next = static_cast<std::size_t>(copy.after) + 1;  // the copy begins when the pass before has ended
      const auto found = first.find(key_of(d, plan.compute[d].at(next)));
      SPILLWAY_ASSERT(found != first.end());
      asked[{d, copy.pass.micro_batch}] = found->second;
    }
  }
  return asked;
}

struct Evictions {
  std::vector<Absence> absences;
  Bytes candidates{}, largest{};  // of one micro-batch
};

Evictions evictions_of(const Trace& trace, const PipelinePlan& plan) {
  const auto asked = reloads(trace, plan);
  Evictions found;
  std::map<std::pair<std::size_t, std::int32_t>, Bytes> bytes;
  for (const SavedTensor& saved : saved_in_layers(trace)) {
    const auto fetch = asked.find({saved.rank, saved.micro_batch});
    if (fetch == asked.end()) continue;
    found.candidates += saved.bytes;
    Bytes& sum = bytes[fetch->first];
    sum += saved.bytes;
    found.largest = std::max(found.largest, sum);
    found.absences.push_back({.tensor = saved.tensor,
                              .tier = Tier::host,  // until the transfers are made into copies between GPUs
                              .store_after = saved.written_by,
                              .leave_after = saved.last_forward,
                              .fetch_at = std::min(fetch->second, saved.first_backward),
                              .back_before = saved.first_backward});
  }
  return found;
}

// Makes transfers to and from the host copies to and from the paired GPU, with blocks for them there.
class PeerCopies {
 public:
  PeerCopies(PlannedTrace& planned, std::int64_t devices)
      : planned_(planned), trace_(planned.trace), devices_(devices) {
    for (const MemoryEvent& event : trace_.memory_events) {
      device_.try_emplace(event.device, event);
      next_address_ = std::max(next_address_, event.address.count() + static_cast<std::uint64_t>(event.bytes.count()));
    }
    for (const std::uint32_t storage : trace_.tensors.storage) next_storage_ = std::max(next_storage_, storage + 1);
  }

  void make() {
    for (TransferLane& lane : planned_.lanes) {
      lane.to_peer = true;
      trace_.lanes[index_of(lane.lane)].name =
          trace_.strings.intern(lane.inbound ? "activations from their pair" : "activations to their pair");
    }
    for (std::size_t k = 0; k < planned_.transfer.size(); ++k) {
      if (planned_.transfer[k] == OpId::none) continue;
      trace_.ops.kind[index_of(planned_.transfer[k])] = OpKind::copy_peer;
      if (planned_.fetch[k] == OpId::none) continue;
      trace_.ops.kind[index_of(planned_.fetch[k])] = OpKind::copy_peer;
      hold(planned_.transfer[k], planned_.fetch[k]);
    }
  }

 private:
  // A block on the pair's GPU from the beginning of the one copy to the end of the other.
  void hold(OpId out, OpId in) {
    const Lane& lane = trace_.lanes[index_of(trace_.ops.lane[index_of(out)])];
    const auto pair = static_cast<std::int16_t>(devices_ - 1 - lane.device);
    const auto found = device_.find(pair);
    SPILLWAY_ASSERT(found != device_.end());
    const Bytes bytes = trace_.ops.bytes[index_of(out)];
    const auto tensor = TensorId(static_cast<std::uint32_t>(trace_.tensors.size()));
    Tensors& tensors = trace_.tensors;
    tensors.name.push_back(trace_.strings.intern("activations of GPU " + std::to_string(lane.device)));
    tensors.bytes.push_back(bytes);
    tensors.storage.push_back(next_storage_++);
    tensors.role.push_back(TensorRole::activation);
    tensors.dtype.push_back(StringId{});
    MemoryEvent event = found->second;
    event.action = MemoryAction::allocate;
    event.tensor = tensor;
    event.bytes = bytes;
    event.address = Addr(next_address_);
    event.time = unknown_time;
    event.total_allocated = event.total_reserved = Bytes(-1);
    event.anchor = out;
    next_address_ += static_cast<std::uint64_t>(bytes.count()) + 512;
    push(event, OpId::none);
    event.action = MemoryAction::free_requested;
    event.anchor = in;
    push(event, in);
  }
  void push(const MemoryEvent& event, OpId gate) {
    planned_.gate.resize(trace_.memory_events.size(), OpId::none);
    trace_.memory_events.push_back(event);
    planned_.gate.push_back(gate);
  }

  PlannedTrace& planned_;
  Trace& trace_;
  std::int64_t devices_;
  std::map<std::int16_t, MemoryEvent> device_;  // an event of each
  std::uint64_t next_address_ = 0;
  std::uint32_t next_storage_ = 0;
};

}  // namespace

OffloadOutcome run_bpipe(const Trace& trace, const PipelinePlan& plan, const Replayer& replayer,
                         const OffloadSettings& settings) {
  SPILLWAY_ASSERT(trace.rank_count == plan.devices);
  OffloadOutcome outcome;
  Evictions evictions = evictions_of(trace, plan);
  outcome.moved.candidates = evictions.candidates;
  outcome.plan = limited_plan(plan.name, replayer, settings);
  outcome.plan.paced_by_device = true;
  outcome.plan.in_flight = evictions.largest;
  outcome.plan.absences = std::move(evictions.absences);
  replay_with_forwarding(trace, replayer, outcome,
                         [&](PlannedTrace& planned) { PeerCopies(planned, plan.devices).make(); });
  outcome.moved.kept = outcome.moved.candidates - outcome.moved.stored;
  outcome.result.offload = outcome.moved;
  return outcome;
}

}  // namespace spillway::planners
