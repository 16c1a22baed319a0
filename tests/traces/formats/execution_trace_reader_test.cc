#include "traces/formats/execution_trace_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/input_error.h"
#include "tests/traces/test_files.h"
#include "traces/acyclic.h"

namespace spillway::traces {
namespace {

Trace read_text(std::string_view text) {
  ByteSource source = test::source_of(text);
  return read_execution_trace(source, {});
}

Trace read_execution_trace_file(const std::string& path) {
  ByteSource source = ByteSource::open(path, test::no_limit);
  return read_execution_trace(source, {});
}

std::string execution_trace_refusal(std::string_view text) {
  try {
    read_text(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string flat_node(int id, int parent, const std::string& name, const std::string& schema, const std::string& in,
                      const std::string& out, int tid = 1) {
  return R"({"id":)" + std::to_string(id) + R"(,"parent":)" + std::to_string(parent) + R"(,"name":")" + name +
         R"(","op_schema":")" + schema + R"(","tid":)" + std::to_string(tid) + R"(,"rf_id":)" +
         std::to_string(id + 100) + R"(,"fw_parent":0,"fw_tid":0,"seq_id":-1,"inputs":[)" + in + R"(],"outputs":[)" +
         out + R"(],"input_types":[],"output_types":[]})";
}

std::string file_of(std::initializer_list<std::string> nodes) {
  std::string text = R"({"schema":"1.0.1","nodes":[)";
  for (const std::string& node : nodes) text += (text.back() == '[' ? "" : ",") + node;
  return text + "]}";
}

// A reused address repeats both ids. Node 3 allocates what node 1 made anew: two lives, so two tensors, and
// node 4 depends on node 3 alone. Storage bytes = (offset + elements) * element bytes = (8 + 24) * 4.
TEST(ExecutionTraceTest, ReusedAddressIsANewTensor) {
  const std::string value = R"([7,70,8,24,4,"cuda:0"])";
  const Trace trace =
      read_text(file_of({flat_node(1, 0, "aten::mul", "", "", value), flat_node(2, 0, "aten::sum", "", value, ""),
                         flat_node(3, 0, "aten::mm", "", "", value), flat_node(4, 0, "aten::sum", "", value, "")}));
  ASSERT_EQ(trace.ops.size(), 4U);
  ASSERT_EQ(trace.tensors.size(), 2U);
  EXPECT_NE(trace.tensors.storage[0], trace.tensors.storage[1]);
  EXPECT_EQ(trace.tensors.bytes[0], Bytes(128));
  ASSERT_EQ(trace.edges.size(), 2U);
  EXPECT_EQ(trace.edges[1].from, OpId(2));
  EXPECT_EQ(trace.edges[1].to, OpId(3));
  EXPECT_EQ(trace.ops.kind[2], OpKind::kernel);
}

// In-place by schema: "Tensor(a!)[] self" is written though there is no output; the reader before it must be first.
TEST(ExecutionTraceTest, InPlaceBySchema) {
  const std::string value = R"([7,70,0,24,4,"cuda:0"])";
  const Trace trace = read_text(
      file_of({flat_node(1, 0, "aten::mm", "", "", value), flat_node(2, 0, "aten::sum", "", value, ""),
               flat_node(3, 0, "aten::_foreach_add_", "aten::_foreach_add_(Tensor(a!)[] self, Scalar s) -> ()",
                         "[" + value + "],1", "")}));
  EXPECT_EQ(trace.uses.back().access, Access::write);
  bool reader_before_writer = false;
  for (const Edge& edge : trace.edges)
    reader_before_writer |=
        edge.from == OpId(1) && edge.to == OpId(2) && edge.kind == EdgeKind::control && edge.inferred;
  EXPECT_TRUE(reader_before_writer);
}

// Callers are spans, leaves are ops whose span is their own call.
TEST(ExecutionTraceTest, LeavesAreOps) {
  const Trace trace = read_text(file_of({flat_node(1, 0, "aten::linear", "", "", ""),
                                         flat_node(2, 1, "aten::addmm", "", R"([1,2,0,4,4,"cuda:1"])", "")}));
  ASSERT_EQ(trace.ops.size(), 1U);
  ASSERT_EQ(trace.spans.size(), 2U);
  EXPECT_EQ(trace.spans.record_id[index_of(trace.ops.span[0])], 102);
  EXPECT_EQ(trace.lanes[index_of(trace.ops.lane[0])].device, 1);
}

// The thread of autograd::engine::evaluate_function is the backward thread.
TEST(ExecutionTraceTest, PhaseByThread) {
  const Trace trace = read_text(
      file_of({flat_node(1, 0, "aten::mm", "", "", ""),
               flat_node(2, 0, "autograd::engine::evaluate_function: MmBackward0", "", "", "", 2),
               flat_node(3, 0, "aten::mm", "", "", "", 2), flat_node(4, 0, "Optimizer.step#Adam.step", "", "", ""),
               flat_node(5, 4, "aten::mul", "", "", "")}));
  ASSERT_TRUE(trace.has(Capability::phases));
  EXPECT_TRUE(trace.is_inferred(Capability::phases));
  EXPECT_EQ(trace.ops.phase, (std::vector{Phase::forward, Phase::backward, Phase::backward, Phase::optimizer}));
}

TEST(ExecutionTraceTest, Hostile) {
  EXPECT_NE(execution_trace_refusal(file_of({flat_node(1, 2, "a", "", "", ""), flat_node(2, 1, "b", "", "", "")}))
                .find("circle"),
            std::string::npos);
  EXPECT_NE(execution_trace_refusal("{}"), "");
  EXPECT_NE(execution_trace_refusal("[]"), "");
  EXPECT_NE(execution_trace_refusal(""), "");
  EXPECT_NE(execution_trace_refusal(R"({"nodes":[{"id":1)"), "");
  EXPECT_NE(execution_trace_refusal(R"({"nodes":[)" + std::string(100'000, '[')), "");
  // Numbers beyond int64 and sizes that overflow are findings.
  const Trace trace =
      read_text(file_of({flat_node(1, 0, "aten::mm", "", R"([1,2,9223372036854775807,9223372036854775807,4,"cuda:0"])",
                                   R"([99999999999999999999,2,0,1,4,"cuda:0"])")}));
  EXPECT_NE(trace.finding("bad_tensor_size"), nullptr);
}

// Edges in a circle are refused with the ops named.
TEST(AcyclicTest, NamesTheCycle) {
  Trace trace;
  const LaneId lane = trace.lane({});
  for (const char* name : {"a", "b", "c"}) trace.append_op({.name = trace.strings.intern(name), .lane = lane});
  trace.edges = {{OpId(0), OpId(1)}, {OpId(1), OpId(2)}};
  EXPECT_NO_THROW(check_acyclic(trace));
  trace.edges.push_back({OpId(2), OpId(1)});
  try {
    check_acyclic(trace);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("\"b\""), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("\"a\""), std::string::npos) << error.what();
  }
}

struct Sample {
  const char* file;
  std::size_t nodes;
};
class RealExecutionTraceTest : public ::testing::TestWithParam<Sample> {};

// Node counts taken with Python's json. Every op's uses exist, tensors have sizes, edges run forward.
TEST_P(RealExecutionTraceTest, Imports) {
  const auto path = test::shared_file(std::string("traces/") + GetParam().file);
  if (!path) GTEST_SKIP() << "no shared data beside the checkout";
  const Trace trace = read_execution_trace_file(*path);
  EXPECT_EQ(trace.source_events, GetParam().nodes);
  EXPECT_GT(trace.ops.size(), GetParam().nodes / 4);
  EXPECT_GT(trace.tensors.size(), 0U);
  EXPECT_EQ(trace.finding("dangling_parent"), nullptr);
  for (const Edge& edge : trace.edges) ASSERT_LT(index_of(edge.from), index_of(edge.to));
}

INSTANTIATE_TEST_SUITE_P(Files, RealExecutionTraceTest,
                         ::testing::Values(Sample{"hta/benchmark_simple_add_et.json.gz", 38},
                                           Sample{"param-et_replay/linear_et.json.gz", 931},
                                           Sample{"param-et_replay/resnet_et.json.gz", 14392},
                                           Sample{"triosim/graph_vgg13-iter41.json.gz", 903}));

// GPT-2 Large, forward, backward and Adam: 27,156 nodes, 14,331 of them leaves, by Python's json; one of the leaves is
// a thread, which is no op.
TEST(ExecutionTraceTest, Gpt2Large) {
  const auto path = test::unpacked_file("hf_GPT2_et.json", "traces/param-et_replay/hf_GPT2_et.json.tar.gz");
  if (!path) GTEST_SKIP() << "no shared data beside the checkout";
  const Trace trace = read_execution_trace_file(*path);
  EXPECT_EQ(trace.source_events, 27156U);
  EXPECT_GE(trace.ops.size(), 14329U);
  EXPECT_LE(trace.ops.size(), 14331U);
  std::array<std::size_t, phase_count> phases{};
  for (const Phase phase : trace.ops.phase) ++phases[static_cast<std::size_t>(phase)];
  EXPECT_GT(phases[static_cast<std::size_t>(Phase::forward)], 2000U);
  EXPECT_GT(phases[static_cast<std::size_t>(Phase::backward)], 2000U);
  // 774,030,080 parameters in fp32; what is deduced to be a weight sums up to that within 1 %.
  std::map<std::uint32_t, std::int64_t> weights;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.tensors.role[i] == TensorRole::weight)
      weights[trace.tensors.storage[i]] = std::max(weights[trace.tensors.storage[i]], trace.tensors.bytes[i].count());
  std::int64_t total = 0;
  for (const auto& entry : weights) total += entry.second;
  EXPECT_NEAR(static_cast<double>(total), 774'030'080.0 * 4, 774'030'080.0 * 4 * 0.01);
}

}  // namespace
}  // namespace spillway::traces
