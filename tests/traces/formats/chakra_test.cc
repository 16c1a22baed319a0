#include <gtest/gtest.h>

#include "base/input_error.h"
#include "tests/traces/test_files.h"
#include "traces/formats/chakra_reader.h"
#include "traces/formats/python_values.h"

namespace spillway::traces {
namespace {

using namespace std::string_literals;

Trace read_bytes(const std::string& bytes) {
  ByteSource source = test::source_of(bytes);
  return read_chakra(source, {});
}

std::string frame(const std::string& message) { return std::string(1, static_cast<char>(message.size())) + message; }

// Node {id, name "n", COMP, ctrl_deps [dep], duration 5}, by the wire format.
std::string node(char id, char dependency) {
  return "\x08"s + id + "\x12\x01n\x18\x04\x20"s + dependency + "\x38\x05"s;
}

std::string chakra_refusal(const std::string& bytes) {
  try {
    read_bytes(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::int64_t total_micros(const Trace& trace) {
  std::int64_t sum = 0;
  for (const Picos duration : trace.ops.duration) sum += duration / picos_per_microsecond;
  return sum;
}

// Python's text of nested lists: quotes, commas and brackets inside texts are not structure.
TEST(PythonValuesTest, FindsTensors) {
  StringPool strings;
  const auto found = tensors_in_python_text(
      "[[1, 2, 0, 64, 4, 'cuda:0'], True, 'a[1, 2, 3, 4, 5, \\'x\\']', [[6, 7, -1, 8, 2, \"cpu\"]], [1, 2], <None>, "
      "nan]",
      strings);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].elements, 64);
  EXPECT_EQ(found[1].offset, -1);
  EXPECT_EQ(strings.text(found[1].device), "cpu");
  for (const char* odd : {"", "[", "[1,", "[1, 2, 0, 64, 4, 'cuda", "'", "[99999999999999999999, 1, 1, 1, 1, 'x']"})
    EXPECT_TRUE(tensors_in_python_text(odd, strings).empty()) << odd;
}

TEST(ChakraTest, SmallGraph) {
  const Trace trace = read_bytes(frame("") + frame(node(2, 1)) + frame(node(1, 9)));
  ASSERT_EQ(trace.ops.size(), 2U);
  ASSERT_EQ(trace.edges.size(), 1U);
  EXPECT_EQ(trace.edges[0].from, OpId(0));
  EXPECT_EQ(trace.edges[0].kind, EdgeKind::control);
  EXPECT_EQ(trace.finding("dangling_ctrl_deps")->count, 1U);
  EXPECT_NE(trace.finding("no_start_times"), nullptr);
  EXPECT_EQ(total_micros(trace), 10);
}

TEST(ChakraTest, Hostile) {
  EXPECT_NE(chakra_refusal(""), "");
  EXPECT_NE(chakra_refusal("\xff\xff\xff\xff\x27").find("claims"), std::string::npos);  // 10 GB
  EXPECT_NE(chakra_refusal("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "");        // no end to the length
  EXPECT_NE(chakra_refusal("\x05\x08\x01"), "");                                        // cut off
  EXPECT_NE(chakra_refusal(frame("") + frame("\x08\x01\x12\x7fx")), "");  // a name longer than its message
  // A circle of control dependencies occurs in real files: a finding. A circle of data can't be.
  EXPECT_EQ(read_bytes(frame("") + frame(node(1, 2)) + frame(node(2, 1))).finding("contradicting_ctrl_deps")->count,
            1U);
  const std::string text =
      chakra_refusal(frame("") + frame("\x08\x01\x18\x04\x28\x02") + frame("\x08\x02\x18\x04\x28\x01"));
  EXPECT_NE(text.find("circle"), std::string::npos) << text;
  // A node that waits for itself occurs in real files: a finding.
  EXPECT_EQ(read_bytes(frame("") + frame(node(1, 1))).finding("self_dependency")->count, 1U);
}

// Facts of the file, stated in its README: nodes, kinds, dangling dependencies, sum of durations.
TEST(ChakraTest, Sample) {
  const auto path = test::unpacked_file("tests/data/chakra.0.et", "traces/chakra/feeder_tests_trace.tar.gz");
  if (!path) GTEST_SKIP() << "no shared data beside the checkout";
  ByteSource source = ByteSource::open(*path, test::no_limit);
  const Trace trace = read_chakra(source, {});
  EXPECT_EQ(trace.source_events, 3664U);
  EXPECT_EQ(trace.ops.size(), 3664U);
  EXPECT_EQ(trace.collectives.size(), 7U);  // of 21 COMM_COLL nodes, those on the GPU
  EXPECT_EQ(total_micros(trace), 381'795);
  EXPECT_EQ(trace.finding("dangling_ctrl_deps")->count, 1277U);
  EXPECT_GT(trace.tensors.size(), 0U);
}

// The JSON twin says the same though its names are spoilt.
TEST(ChakraTest, DamagedJsonTwin) {
  const auto path = test::unpacked_file("jsonData/chakra.0.json", "traces/chakra/json_trace.tar.gz");
  if (!path) GTEST_SKIP() << "no shared data beside the checkout";
  ByteSource source = ByteSource::open(*path, test::no_limit);
  const Trace trace = read_chakra_json(source, {});
  EXPECT_EQ(trace.ops.size(), 3664U);
  EXPECT_EQ(total_micros(trace), 381'795);
  EXPECT_NE(trace.finding("damaged_names"), nullptr);
}

}  // namespace
}  // namespace spillway::traces
