#include "validation/trainer/step_trace.h"

#include <algorithm>
#include <vector>

#include "base/input_error.h"

namespace spillway::validation {
namespace {

constexpr std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "float32";
    case ElementType::bf16:
      return "bfloat16";
    case ElementType::i32:
      return "int32";
  }
  return "";
}

class TraceBuilder {
 public:
  TraceBuilder(const StepGraph& graph, std::span<const Picos> durations, Picos launch, const std::string& device)
      : graph_(graph), durations_(durations), launch_(launch) {
    host_ = trace_.lane({.kind = LaneKind::host_thread, .number = 1});
    stream_ = trace_.lane({.kind = LaneKind::stream, .device = 0, .number = 7});
    trace_.devices.push_back({.name = trace_.strings.intern(device)});
    trace_.provenance.push_back(
        {.file = {}, .format = "spillway-trainer", .producer = "spillway", .schema_version = "1"});
    trace_.memory_size_is_requested = true;
  }

  Trace run() {
    add_tensors();
    for (std::uint32_t t = 0; t < graph_.tensors.size(); ++t)
      if (graph_.tensors[t].persistent) memory(t, MemoryAction::allocate, OpId::none);
    trace_.steps.push_back({.name = trace_.strings.intern("step")});
    OpId before = host_call("step begins", OpKind::host_work, {});
    for (std::size_t c = 0; c < graph_.calls.size(); ++c) {
      for (const std::uint32_t t : graph_.calls[c].writes)
        if (!graph_.tensors[t].persistent && first_[t] == c) memory(t, MemoryAction::allocate, before);
      before = add_call(c);
      for (const std::uint32_t t : operands(graph_.calls[c]))
        if (!graph_.tensors[t].persistent && last_[t] == c) memory(t, MemoryAction::free_requested, before);
    }
    trace_.steps[0].duration = std::max(host_clock_, device_clock_);
    for (const Capability capability :
         {Capability::times, Capability::memory, Capability::uses, Capability::edges, Capability::phases})
      trace_.set(capability);
    return std::move(trace_);
  }

 private:
  static std::vector<std::uint32_t> operands(const KernelCall& call) {
    std::vector<std::uint32_t> all = call.reads;
    all.insert(all.end(), call.writes.begin(), call.writes.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  void add_tensors() {
    first_.assign(graph_.tensors.size(), graph_.calls.size());
    last_.assign(graph_.tensors.size(), 0);
    for (std::size_t c = 0; c < graph_.calls.size(); ++c)
      for (const std::uint32_t t : operands(graph_.calls[c])) {
        first_[t] = std::min(first_[t], c);
        last_[t] = c;
      }
    std::uint64_t address = std::uint64_t{1} << 40;
    for (std::uint32_t t = 0; t < graph_.tensors.size(); ++t) {
      const GraphTensor& tensor = graph_.tensors[t];
      trace_.tensors.name.push_back(trace_.strings.intern(tensor.name));
      trace_.tensors.bytes.push_back(tensor.bytes());
      trace_.tensors.storage.push_back(t);
      trace_.tensors.role.push_back(tensor.role);
      trace_.tensors.dtype.push_back(trace_.strings.intern(name_of(tensor.type)));
      address_.push_back(Addr(address));
      address += (static_cast<std::uint64_t>(tensor.bytes().count()) / 512 + 2) * 512;
    }
  }

  OpId host_call(const std::string& name, OpKind kind, const KernelCall* call) {
    OpRow row;
    row.name = trace_.strings.intern(name);
    row.kind = kind;
    row.lane = host_;
    row.step = 0;
    row.start = host_clock_;
    row.duration = launch_;
    if (call != nullptr) {
      row.phase = call->phase;
      row.layer = call->layer;
    }
    host_clock_ += launch_;
    return trace_.append_op(row);
  }

  // The launch.
  OpId add_call(std::size_t c) {
    const KernelCall& call = graph_.calls[c];
    const OpId launch = host_call("launch", OpKind::launch, &call);
    OpRow row;
    row.name = trace_.strings.intern(call.name);
    row.kind = OpKind::kernel;
    row.phase = call.phase;
    row.layer = call.layer;
    row.lane = stream_;
    row.step = 0;
    device_clock_ = row.start = std::max(device_clock_, host_clock_);
    row.duration = durations_[c];
    row.launched_by = launch;
    row.flops = Flops(call.flops);
    Bytes moved;
    for (const std::uint32_t t : call.reads) moved += graph_.tensors[t].bytes();
    for (const std::uint32_t t : call.writes) moved += graph_.tensors[t].bytes();
    row.bytes = moved;
    device_clock_ += durations_[c];
    const OpId op = trace_.append_op(row);
    const auto tensor = [](std::uint32_t t) { return TensorId(t); };
    for (const std::uint32_t t : call.reads) trace_.uses.push_back({op, tensor(t), Access::read});
    for (const std::uint32_t t : call.writes) trace_.uses.push_back({op, tensor(t), Access::write});
    return launch;
  }

  void memory(std::uint32_t tensor, MemoryAction action, OpId anchor) {
    MemoryEvent event;
    event.address = address_[tensor];
    event.bytes = graph_.tensors[tensor].bytes();
    event.anchor = anchor;
    event.tensor = TensorId(tensor);
    event.action = action;
    event.stream = stream_;
    trace_.memory_events.push_back(event);
  }

  const StepGraph& graph_;
  std::span<const Picos> durations_;
  Picos launch_;
  Trace trace_;
  LaneId host_{}, stream_{};
  Picos host_clock_{}, device_clock_{};
  std::vector<std::size_t> first_, last_;  // calls, by tensor
  std::vector<Addr> address_;
};

}  // namespace

Trace step_trace(const StepGraph& graph, std::span<const Picos> durations, Picos launch, const std::string& device) {
  SPILLWAY_ASSERT(durations.size() == graph.calls.size());
  return TraceBuilder(graph, durations, launch, device).run();
}

std::size_t call_of(const StepGraph& graph, const Trace& trace, OpId op) {
  const auto found = graph.call_by_name.find(std::string(trace.strings.text(trace.ops.name[index_of(op)])));
  SPILLWAY_ASSERT(found != graph.call_by_name.end());
  return found->second;
}

}  // namespace spillway::validation
