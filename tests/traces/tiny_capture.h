// A capture made by hand, as a profiler leaves it: host calls first, works behind them, spans with autograd's sequence
// numbers, memory events without tensors, no uses.
//
//   forward    op 0, op 1, ... on thread 1; op k makes block k
//   backward   node n-1, ..., node 0 on thread 2; node k gives back block k-1, which op k saved, once it has run
//   optimizer  one kernel; gives back the last block, which no node saved
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

struct TinyCapture {
  int operators = 4, passes = 1;
  int operators_per_layer = 0;  // 0: the capture names no layers
  Bytes block{64 << 20};
  Picos kernel = microseconds(200), call = microseconds(2);

  Trace make() const {
    Trace trace;
    Builder builder{*this, trace};
    builder.host(OpKind::host_work, 0, Phase::unknown, no_index16);
    for (int pass = 0; pass < passes; ++pass) builder.pass(pass);
    builder.finish();
    return trace;
  }

 private:
  struct Builder {
    const TinyCapture& shape;
    Trace& trace;
    Picos clock{};
    std::vector<std::pair<OpRow, OpId>> works{};  // rows and their launches

    LaneId thread(int number) { return trace.lane({.kind = LaneKind::host_thread, .number = number}); }
    LaneId stream() { return trace.lane({.kind = LaneKind::stream, .device = 0, .number = 7}); }
    std::uint16_t layer(int k) const {
      return shape.operators_per_layer == 0 ? no_index16 : static_cast<std::uint16_t>(k / shape.operators_per_layer);
    }

    OpId host(OpKind kind, int on, Phase phase, std::uint16_t of_layer) {
      const OpId op = trace.append_op({.name = trace.strings.intern("cudaLaunchKernel"),
                                       .kind = kind,
                                       .phase = phase,
                                       .lane = thread(on + 1),
                                       .layer = of_layer,
                                       .start = clock,
                                       .duration = shape.call,
                                       .span = trace.spans.size() == 0
                                                   ? SpanId::none
                                                   : SpanId(static_cast<std::uint32_t>(trace.spans.size() - 1))});
      clock += shape.call + microseconds(2);
      return op;
    }
    void launch(int on, Phase phase, std::uint16_t of_layer, const std::string& name) {
      const OpId by = host(OpKind::launch, on, phase, of_layer);
      OpRow row = trace.op(by);
      row.name = trace.strings.intern(name);
      row.kind = OpKind::kernel;
      row.lane = stream();
      row.duration = shape.kernel;
      row.launched_by = by;
      works.emplace_back(row, by);
    }
    void span(const std::string& name, int on, std::int64_t sequence) {
      Spans& spans = trace.spans;
      spans.name.push_back(trace.strings.intern(name));
      spans.kind.push_back(SpanKind::cpu_operator);
      spans.lane.push_back(thread(on + 1));
      spans.start.push_back(clock);
      spans.duration.push_back(shape.call + microseconds(3));
      spans.sequence.push_back(sequence);
      spans.record_id.push_back(-1);
      clock += microseconds(1);
    }
    void memory(int block, MemoryAction action) {
      MemoryEvent event;
      event.time = clock;
      event.address = Addr((static_cast<std::uint64_t>(block) + 1) << 32U);
      event.bytes = shape.block;
      event.anchor = OpId(static_cast<std::uint32_t>(trace.ops.size() - 1));
      event.action = action;
      trace.memory_events.push_back(event);
    }
    void pass(int number) {
      const int n = shape.operators;
      for (int k = 0; k < n; ++k) {
        span("aten::op", 0, number * 100 + k);
        memory(k, MemoryAction::allocate);
        launch(0, Phase::forward, layer(k), "forward " + std::to_string(k));
      }
      for (int k = n; k-- > 0;) {
        span("autograd::engine::evaluate_function: OpBackward0", 1, number * 100 + k);
        launch(1, Phase::backward, layer(k), "backward " + std::to_string(k));
        if (k > 0) memory(k - 1, MemoryAction::free_requested);
      }
      span("Optimizer", 0, -1);
      launch(0, Phase::optimizer, no_index16, "optimizer");
      memory(n - 1, MemoryAction::free_requested);
    }
    void finish() {
      for (auto& [row, by] : works) {
        row.start = unknown_time;
        trace.append_op(row);
      }
      Picos free{};
      for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const OpId by = trace.ops.launched_by[i];
        if (by == OpId::none) continue;
        trace.ops.start[i] = std::max(free, trace.ops.start[index_of(by)] + microseconds(3));
        free = trace.ops.start[i] + trace.ops.duration[i];
      }
      Provenance& provenance = trace.provenance.emplace_back();
      provenance.file = "tiny.json";
      provenance.format = "kineto";
      for (const Capability has : {Capability::times, Capability::memory, Capability::phases}) trace.set(has);
    }
  };
};

}  // namespace spillway::traces
