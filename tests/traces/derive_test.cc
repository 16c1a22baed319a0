// What derive() infers from names, threads and times, on traces of a few rows.
#include "traces/derive.h"

#include <gtest/gtest.h>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

constexpr Picos us(std::int64_t count) { return microseconds(count); }

// A trace row by row; spans must come sorted by start. `sequence`: autograd's number.
struct Sketch {
  Trace trace;
  LaneId main = trace.lane({.kind = LaneKind::host_thread, .number = 1});
  LaneId autograd = trace.lane({.kind = LaneKind::host_thread, .number = 2});
  LaneId stream = trace.lane({.kind = LaneKind::stream, .device = 0, .number = 7});

  SpanId span(const char* name, LaneId lane, std::int64_t start, std::int64_t duration, std::int64_t sequence = -1,
              SpanKind kind = SpanKind::cpu_operator) {
    Spans& spans = trace.spans;
    spans.name.push_back(trace.strings.intern(name));
    spans.kind.push_back(kind);
    spans.lane.push_back(lane);
    spans.start.push_back(us(start));
    spans.duration.push_back(us(duration));
    spans.sequence.push_back(sequence);
    spans.record_id.push_back(-1);
    return SpanId{static_cast<std::uint32_t>(spans.size() - 1)};
  }
  OpId launch(LaneId lane, std::int64_t start, SpanId span = SpanId::none) {
    return trace.append_op({.kind = OpKind::launch, .lane = lane, .start = us(start), .duration = us(1), .span = span});
  }
  OpId kernel(OpId launch, std::int64_t start, OpKind kind = OpKind::kernel) {
    return trace.append_op(
        {.kind = kind, .lane = stream, .start = us(start), .duration = us(1), .launched_by = launch});
  }
  void memory(MemoryAction action, std::uint64_t address, std::int64_t bytes, OpId anchor,
              TensorId tensor = TensorId::none, std::int16_t device = 0) {
    trace.memory_events.push_back({.address = Addr(address),
                                   .bytes = Bytes(bytes),
                                   .anchor = anchor,
                                   .tensor = tensor,
                                   .action = action,
                                   .device = device});
  }
  [[nodiscard]] Phase phase(OpId op) const { return trace.ops.phase[index_of(op)]; }
  [[nodiscard]] bool inferred(OpId op) const {
    return (trace.ops.flags[index_of(op)] & static_cast<std::uint8_t>(OpFlag::phase_inferred)) != 0;
  }
};

// forward: sequence number 5 returns in a backward operator. backward and optimizer: stamped by name.
// Device work has its launch's phase; a collective is communication whoever launched it.
TEST(Derive, PhasesBySequenceNumberAndName) {
  Sketch s;
  const SpanId forward = s.span("aten::linear", s.main, 0, 10, 5);
  const SpanId backward = s.span("autograd::engine::evaluate_function: AddmmBackward0", s.autograd, 20, 10, 5);
  const SpanId optimizer = s.span("Optimizer.step#AdamW.step", s.main, 40, 10, -1, SpanKind::annotation);
  const OpId first = s.launch(s.main, 2, forward);
  const OpId last = s.launch(s.main, 42, optimizer);
  const OpId middle = s.launch(s.autograd, 22, backward);
  const OpId work = s.kernel(first, 5);
  const OpId reduce = s.kernel(middle, 25, OpKind::collective);
  derive(s.trace);
  EXPECT_EQ(s.phase(first), Phase::forward);
  EXPECT_TRUE(s.inferred(first));
  EXPECT_EQ(s.phase(work), Phase::forward);
  EXPECT_TRUE(s.inferred(work));
  EXPECT_EQ(s.phase(middle), Phase::backward);
  EXPECT_FALSE(s.inferred(middle));
  EXPECT_EQ(s.phase(last), Phase::optimizer);
  EXPECT_EQ(s.phase(reduce), Phase::communication);
  EXPECT_TRUE(s.trace.has(Capability::phases));
  EXPECT_TRUE(s.trace.is_inferred(Capability::phases));
}

// A thread that runs backward operators and no step is autograd's: calls outside its operators are backward, inferred.
TEST(Derive, CallsOfTheBackwardThread) {
  Sketch s;
  s.span("AddmmBackward0", s.autograd, 20, 10, 5);
  const OpId outside = s.launch(s.autograd, 35);
  const OpId elsewhere = s.launch(s.main, 36);
  derive(s.trace);
  EXPECT_EQ(s.phase(outside), Phase::backward);
  EXPECT_TRUE(s.inferred(outside));
  EXPECT_EQ(s.phase(elsewhere), Phase::unknown);
}

// In CheckpointFunctionBackward what autograd does not mark as backward is recompute.
TEST(Derive, CheckpointedForwardIsRecompute) {
  Sketch s;
  s.span("CheckpointFunctionBackward", s.autograd, 10, 20);
  const SpanId again = s.span("aten::gelu", s.autograd, 11, 5, 9);
  const SpanId gradient = s.span("GeluBackward0", s.autograd, 20, 5, 9);
  const OpId recomputed = s.launch(s.autograd, 12, again);
  const OpId backward = s.launch(s.autograd, 21, gradient);
  derive(s.trace);
  EXPECT_EQ(s.phase(recomputed), Phase::recompute);
  EXPECT_EQ(s.phase(backward), Phase::backward);
}

// What a reader has filled in stays.
TEST(Derive, KeepsWhatTheFileSays) {
  Sketch s;
  const SpanId backward = s.span("AddmmBackward0", s.main, 0, 10);
  const OpId op = s.launch(s.main, 1, backward);
  s.trace.ops.phase[index_of(op)] = Phase::optimizer;
  s.trace.ops.layer[index_of(op)] = 4;
  derive(s.trace);
  EXPECT_EQ(s.phase(op), Phase::optimizer);
  EXPECT_EQ(s.trace.ops.layer[index_of(op)], 4);
}

// Names with a number in the place of a layer's; the backward operator gets its forward operator's layer.
TEST(Derive, LayersFromNames) {
  Sketch s;
  s.span("nn.Module: LlamaDecoderLayer_7", s.main, 0, 10, -1, SpanKind::python);
  const SpanId forward = s.span("aten::linear", s.main, 1, 5, 3);
  s.span("model.layers.12.mlp", s.main, 20, 5, -1, SpanKind::annotation);
  const SpanId other = s.span("aten::mul", s.main, 21, 2);
  s.span("path.h.99999999", s.main, 30, 5, -1, SpanKind::annotation);
  const SpanId none = s.span("aten::add", s.main, 31, 2);
  const SpanId backward = s.span("AddmmBackward0", s.autograd, 40, 5, 3);
  const OpId ops[] = {s.launch(s.main, 2, forward), s.launch(s.main, 21, other), s.launch(s.main, 31, none),
                      s.launch(s.autograd, 41, backward)};
  derive_layers(s.trace);
  const std::uint16_t layers[] = {7, 12, no_index16, 7};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(s.trace.ops.layer[index_of(ops[i])], layers[i]) << i;
}

// Steps are half-open; device work belongs to the step of its launch, however late it runs.
TEST(Derive, StepsByLaunch) {
  Sketch s;
  s.trace.steps = {{.start = us(10), .duration = us(10)}, {.start = us(20), .duration = us(10)}};
  const OpId before = s.launch(s.main, 9), first = s.launch(s.main, 10), second = s.launch(s.main, 20),
             after = s.launch(s.main, 30);
  const OpId late = s.kernel(first, 29);
  assign_steps(s.trace);
  const auto& step = s.trace.ops.step;
  EXPECT_EQ(step[index_of(before)], no_index16);
  EXPECT_EQ(step[index_of(first)], 0);
  EXPECT_EQ(step[index_of(second)], 1);
  EXPECT_EQ(step[index_of(after)], no_index16);
  EXPECT_EQ(step[index_of(late)], 0);
}

// Spans without times enclose nothing: a stamped one before another leaves that one's phase open. Nor do spans of no
// thread, which own forms may hold.
TEST(Derive, SpansWithoutTimesHaveNoParents) {
  Sketch s;
  s.span("aten::mul", LaneId::none, 0, 10);
  s.span("Optimizer.step#AdamW.step", s.main, 0, 10, -1, SpanKind::annotation);
  const SpanId other = s.span("aten::add", s.main, 0, 5);
  for (const SpanId span : {SpanId{1}, SpanId{2}})
    s.trace.spans.start[index_of(span)] = s.trace.spans.duration[index_of(span)] = unknown_time;
  const OpId op = s.launch(s.main, 0, other);
  derive(s.trace);
  EXPECT_NE(s.phase(op), Phase::optimizer);
}

// Saved: GPU memory allocated in forward and freed in backward: 100 + 40. Not: freed in forward (1000), allocated in
// backward (2000), on the host (4000), never freed (8000).
TEST(Derive, SavedActivations) {
  Sketch s;
  const OpId forward = s.launch(s.main, 0), backward = s.launch(s.main, 10);
  s.trace.ops.phase = {Phase::forward, Phase::backward};
  s.trace.ops.step = {0, 0};
  s.trace.steps = {{.start = us(0), .duration = us(20)}};
  Tensors& tensors = s.trace.tensors;
  tensors.name.assign(2, s.trace.strings.intern("t"));
  tensors.bytes = {Bytes(100), Bytes(40)};
  tensors.storage = {0, 1};
  tensors.role = {TensorRole::unknown, TensorRole::weight};
  tensors.dtype.assign(2, s.trace.strings.intern("float"));
  constexpr auto alloc = MemoryAction::allocate, free = MemoryAction::free_requested;
  s.memory(alloc, 0x1000, 100, forward, TensorId{0});
  s.memory(alloc, 0x2000, 1000, forward);
  s.memory(free, 0x2000, 1000, forward);
  s.memory(alloc, 0x2000, 40, forward, TensorId{1});  // the address again
  s.memory(alloc, 0x3000, 4000, forward, TensorId::none, -1);
  s.memory(alloc, 0x4000, 8000, forward);
  s.memory(alloc, 0x5000, 2000, backward);
  for (const std::uint64_t address : {0x1000U, 0x2000U, 0x5000U}) s.memory(free, address, 1, backward);
  s.memory(free, 0x3000, 4000, backward, TensorId::none, -1);
  s.memory(free, 0x9000, 5, backward);  // never seen allocated
  s.trace.set(Capability::memory);
  derive(s.trace);
  EXPECT_EQ(tensors.role[0], TensorRole::activation);
  EXPECT_EQ(tensors.role[1], TensorRole::weight);
}

}  // namespace
}  // namespace spillway::traces
