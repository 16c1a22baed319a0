// Traces as graphs to order: what lives when, what waits for what.
#include "planners/order/order_trace.h"

#include <gtest/gtest.h>

#include <string>

#include "base/input_error.h"
#include "planners/order/order_check.h"
#include "planners/order/order_solver.h"

namespace spillway::planners {
namespace {

struct Step {
  std::string name;
  std::vector<std::uint32_t> reads, writes;  // storages
};

Trace trace_of(const std::vector<std::int64_t>& storages, const std::vector<Step>& steps,
               OpKind kind = OpKind::kernel) {
  Trace trace;
  for (std::uint32_t s = 0; s < storages.size(); ++s) {
    trace.tensors.name.push_back(trace.strings.intern("t" + std::to_string(s)));
    trace.tensors.bytes.push_back(Bytes(storages[s]));
    trace.tensors.storage.push_back(s);
    trace.tensors.role.push_back(TensorRole::unknown);
    trace.tensors.dtype.push_back(StringId{});
  }
  const LaneId lane = trace.lane(Lane{});
  for (const Step& step : steps) {
    OpRow row;
    row.name = trace.strings.intern(step.name);
    row.kind = kind;
    row.lane = lane;
    const OpId op = trace.append_op(row);
    for (const std::uint32_t s : step.reads) trace.uses.push_back({op, TensorId{s}, Access::read});
    for (const std::uint32_t s : step.writes) trace.uses.push_back({op, TensorId{s}, Access::write});
  }
  trace.set(Capability::uses);
  return trace;
}

// Storage 0 was there before: 100 bytes all along. 1 is made, written again in place and read; 2 is made of it.
TEST(OrderTrace, AStorageIsOneTensorHoweverOftenItIsWritten) {
  const OrderGraph graph =
      order_graph_of(trace_of({100, 10, 5}, {{"make", {0}, {1}}, {"relu_", {1}, {1}}, {"next", {1}, {2}}}), "t");
  EXPECT_EQ(graph.constant_bytes, 100);
  EXPECT_EQ(graph.operators, (std::vector<std::string>{"make #0", "relu_ #1", "next #2"}));
  EXPECT_EQ(live_bytes(graph, graph.program_order), (std::vector<std::int64_t>{10, 10, 15}));
}

// A read of the old value may not come after the write, nor a read of the new one before it.
TEST(OrderTrace, WritesInPlaceAreHazards) {
  const OrderGraph graph = order_graph_of(
      trace_of({10, 1, 1}, {{"make", {}, {0}}, {"old", {0}, {1}}, {"relu_", {0}, {0}}, {"new", {0}, {2}}}), "t");
  EXPECT_TRUE(check_order(graph, std::vector<OperatorIndex>{0, 1, 2, 3}).legal());
  EXPECT_FALSE(check_order(graph, std::vector<OperatorIndex>{0, 2, 1, 3}).legal());
  EXPECT_FALSE(check_order(graph, std::vector<OperatorIndex>{0, 1, 3, 2}).legal());
}

TEST(OrderTrace, OnlyDeviceWorkTakesDeviceMemory) {
  const std::vector<Step> steps = {{"a", {}, {0}}, {"b", {0}, {1}}};
  EXPECT_EQ(solve_order(order_graph_of(trace_of({4, 2}, steps), "t")).peak_bytes, 6);
  EXPECT_EQ(solve_order(order_graph_of(trace_of({4, 2}, steps, OpKind::host_work), "t")).peak_bytes, 0);
}

TEST(OrderTrace, TracesWithoutUsesAreRefused) { EXPECT_THROW(order_graph_of(Trace(), "t"), InputError); }

}  // namespace
}  // namespace spillway::planners
