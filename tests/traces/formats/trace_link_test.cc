#include "traces/trace_link.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "tests/traces/test_files.h"
#include "traces/formats/execution_trace_reader.h"
#include "traces/formats/kineto/kineto_reader.h"

namespace spillway::traces {
namespace {

void add_span(Trace& trace, const char* name, std::int64_t record_id) {
  trace.spans.name.push_back(trace.strings.intern(name));
  trace.spans.kind.push_back(SpanKind::cpu_operator);
  trace.spans.lane.push_back(trace.lane({.kind = LaneKind::host_thread}));
  trace.spans.start.push_back(Picos(0));
  trace.spans.duration.push_back(Picos(0));
  trace.spans.sequence.push_back(-1);
  trace.spans.record_id.push_back(record_id);
}

// Graph: a writes a tensor that b reads, ids 1 and 2. Timed: the same operators under ids 11 and 12, each with a launch
// and a kernel. So the shift is 10, the edge runs from kernel to kernel, and the kernels use the tensor.
TEST(JoinTest, ShiftedIds) {
  Trace graph;
  add_span(graph, "a", 1), add_span(graph, "b", 2);
  const LaneId stream = graph.lane({.kind = LaneKind::stream, .device = 0});
  const OpId a =
      graph.append_op({.name = graph.strings.intern("a"), .phase = Phase::backward, .lane = stream, .span = SpanId(0)});
  const OpId b =
      graph.append_op({.name = graph.strings.intern("b"), .phase = Phase::backward, .lane = stream, .span = SpanId(1)});
  graph.tensors.name = {graph.strings.intern("t")};
  graph.tensors.bytes = {Bytes(64)};
  graph.tensors.storage = {0};
  graph.tensors.role = {TensorRole::activation};
  graph.tensors.dtype = {graph.strings.intern("float")};
  graph.uses = {{a, TensorId(0), Access::write}, {b, TensorId(0), Access::read}};
  graph.edges = {{a, b, EdgeKind::data}};
  graph.set(Capability::phases, true);

  Trace timed;
  add_span(timed, "warmup", 5), add_span(timed, "a", 11), add_span(timed, "b", 12);
  const LaneId host = timed.lane({.kind = LaneKind::host_thread});
  const LaneId gpu = timed.lane({.kind = LaneKind::stream, .device = 0});
  for (int i = 0; i < 2; ++i) {
    const OpId launch = timed.append_op({.kind = OpKind::launch,
                                         .lane = host,
                                         .start = microseconds(i),
                                         .span = SpanId(static_cast<std::uint32_t>(i + 1))});
    timed.append_op({.kind = OpKind::kernel,
                     .lane = gpu,
                     .start = microseconds(10 + i),
                     .duration = microseconds(1),
                     .launched_by = launch});
  }
  const Trace joined = link_traces(timed, graph);
  ASSERT_EQ(joined.edges.size(), 1U);
  EXPECT_EQ(joined.edges[0].from, OpId(1));
  EXPECT_EQ(joined.edges[0].to, OpId(3));
  ASSERT_EQ(joined.uses.size(), 2U);
  EXPECT_EQ(joined.uses[0].op, OpId(1));
  EXPECT_EQ(joined.uses[1].access, Access::read);
  EXPECT_EQ(joined.ops.start[3], microseconds(11));
  EXPECT_EQ(joined.ops.phase[3], Phase::backward);
  EXPECT_EQ(joined.finding("join_matched")->count, 2U);
  EXPECT_NE(joined.finding("join_shift"), nullptr);
  EXPECT_TRUE(joined.has(Capability::uses));
  // Nothing in common: refused.
  Trace other;
  add_span(other, "x", 1);
  EXPECT_THROW(link_traces(other, graph), InputError);
}

struct Pair {
  const char* kineto;
  const char* graph;
  std::size_t at_least;  // operators matched
};
class RealJoinTest : public ::testing::TestWithParam<Pair> {};

TEST_P(RealJoinTest, Matches) {
  const auto kineto = test::shared_file(std::string("traces/") + GetParam().kineto);
  const auto graph = test::shared_file(std::string("traces/") + GetParam().graph);
  if (!kineto || !graph) GTEST_SKIP() << "no shared data beside the checkout";
  ByteSource timed = ByteSource::open(*kineto, test::no_limit), recorded = ByteSource::open(*graph, test::no_limit);
  const Trace joined = link_traces(read_kineto(timed, {}), read_execution_trace(recorded, {}));
  EXPECT_GE(joined.finding("join_matched")->count, GetParam().at_least);
  EXPECT_GT(joined.uses.size(), 0U);
  EXPECT_EQ(joined.provenance.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(
    Files, RealJoinTest,
    ::testing::Values(Pair{"hta/benchmark_simple_add_trace.json.gz", "hta/benchmark_simple_add_et.json.gz", 36},
                      Pair{"triosim/profiler_vgg13-iter41.json.gz", "triosim/graph_vgg13-iter41.json.gz", 680},
                      Pair{"param-et_replay/linear_kineto.json.gz", "param-et_replay/linear_et.json.gz", 880}));
// The graph of this pair was recorded a year later than its timed trace: not the same run.
TEST(JoinTest, AnotherRunIsRefused) {
  const auto kineto = test::shared_file("traces/param-et_replay/resnet_kineto.json.gz");
  const auto graph = test::shared_file("traces/param-et_replay/resnet_et.json.gz");
  if (!kineto || !graph) GTEST_SKIP() << "no shared data beside the checkout";
  ByteSource timed = ByteSource::open(*kineto, test::no_limit), recorded = ByteSource::open(*graph, test::no_limit);
  EXPECT_THROW(link_traces(read_kineto(timed, {}), read_execution_trace(recorded, {})), InputError);
}

}  // namespace
}  // namespace spillway::traces
