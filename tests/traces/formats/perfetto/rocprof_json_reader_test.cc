#include "traces/formats/perfetto/rocprof_json_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/input_error.h"
#include "traces/formats/read.h"

namespace spillway::traces {
namespace {

Trace read_rocprof(const std::string& text) {
  ByteSource source =
      ByteSource::from_memory("results.json", std::as_bytes(std::span(text.data(), text.size())), 1U << 30U);
  Trace trace = read_rocprof_json(source, {});
  trace.check_invariants();
  return trace;
}

std::string rocprof_refusal(const std::string& text) {
  try {
    read_rocprof(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::uint64_t rocprof_count(const Trace& trace, std::string_view kind) {
  const Finding* const found = trace.finding(kind);
  return found == nullptr ? 0 : found->count;
}

constexpr std::string_view agents = R"("agents": [
  {"size": 312, "id": {"handle": 10}, "type": 1, "logical_node_id": 0, "name": "EPYC", "product_name": "EPYC"},
  {"size": 312, "id": {"handle": 30}, "type": 2, "logical_node_id": 2, "name": "gfx950", "product_name": "Instinct MI350X"},
  {"size": 312, "id": {"handle": 40}, "type": 2, "logical_node_id": 3, "name": "gfx950", "product_name": "Instinct MI350X"}])";
constexpr std::string_view names = R"("strings": {"callback_records": [{"kind": "NONE", "operations": []}],
  "buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP", "operations": ["hipLaunchKernel", "hipMemcpyAsync"]},
    {"kind": "HSA", "operations": ["hsa_amd_memory_async_copy"]}, {"kind": "MARKER", "operations": ["roctxRangePushA"]},
    {"kind": "COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"]}],
  "marker_api": [{"key": 8, "value": "step"}]},
  "kernel_symbols": [{"kernel_id": 0, "kernel_name": "", "formatted_kernel_name": "0"},
    {"kernel_id": 1, "kernel_name": "Cijk_Ailk_Bljk.kd", "formatted_kernel_name": "Cijk_Ailk_Bljk"},
    {"kernel_id": 2, "kernel_name": "ncclDevKernel_Generic", "formatted_kernel_name": ""}])";

std::string call(int kind, int operation, int correlation, int from, int to) {
  return R"({"size": 48, "kind": )" + std::to_string(kind) + R"(, "operation": )" + std::to_string(operation) +
         R"(, "correlation_id": {"internal": )" + std::to_string(correlation) +
         R"(, "external": 18446744073709551615}, "start_timestamp": )" + std::to_string(from) +
         R"(, "end_timestamp": )" + std::to_string(to) + R"(, "thread_id": 500})";
}

std::string with(std::string record, const std::string& more) {
  record.back() = ',';
  return record + " " + more + "}";
}

// A step on two GPUs, as tests/traces/formats/perfetto/perfetto_reader_test.cc has it of the Perfetto file.
std::string step(bool names_last = false, bool streams = true) {
  const auto lane = [&](int stream) {
    return streams ? R"(, "stream_id": {"handle": )" + std::to_string(stream) + "}" : std::string();
  };
  const auto kernel = [&](int correlation, int from, int to, int agent, int id) {
    return with(call(5, 0, correlation, from, to),
                R"("dispatch_info": {"agent_id": {"handle": )" + std::to_string(agent) +
                    R"(}, "queue_id": {"handle": 9}, "kernel_id": )" + std::to_string(id) +
                    R"(, "grid_size": {"x": 512, "y": 1, "z": 1}})" + lane(1));
  };
  const auto copy = [&](int operation, int correlation, int from, int to, int source, int target, int stream) {
    return with(call(4, operation, correlation, from, to),
                R"("dst_agent_id": {"handle": )" + std::to_string(target) + R"(}, "src_agent_id": {"handle": )" +
                    std::to_string(source) + R"(}, "bytes": 1048576)" + lane(stream));
  };
  const std::string records =
      R"("callback_records": {"counter_collection": []}, "buffer_records": {"kernel_dispatch": [)" +
      kernel(5, 30'000, 45'500, 30, 1) + "," + kernel(6, 30'000, 31'000, 40, 2) + R"(], "hip_api": [)" +
      call(1, 1, 4, 10'000, 18'000) + "," + call(1, 0, 5, 20'000, 25'000) + "," + call(1, 0, 6, 26'000, 27'000) + "," +
      call(1, 1, 7, 28'000, 29'000) + R"(], "hsa_api": [)" + call(2, 0, 90, 15'000, 17'000) + R"(], "marker_api": [)" +
      call(3, 0, 8, 9'000, 60'000) + R"(], "memory_copy": [)" + copy(1, 90, 16'000, 19'000, 10, 30, 1) + "," +
      copy(2, 7, 46'000, 47'000, 40, 10, 2) + R"(], "memory_allocation": [{"kind": 16, "size": 1}]})";
  const std::string said = std::string(agents) + ", " + std::string(names);
  return R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 500, "node": {"id": 0}}, )" +
         (names_last ? records + ", " + said : said + ", " + records) + "}]}";
}

using RocprofRow = std::tuple<std::string, OpKind, int, std::int64_t, std::int64_t, std::int64_t, std::string>;
std::vector<RocprofRow> rocprof_rows(const Trace& trace) {
  std::vector<RocprofRow> rows;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    const OpId launch = trace.ops.launched_by[i];
    rows.emplace_back(trace.strings.text(trace.ops.name[i]), trace.ops.kind[i], lane.device, lane.number,
                      trace.ops.start[i].count() / 1000, trace.ops.duration[i].count() / 1000,
                      launch == OpId::none ? "" : trace.strings.text(trace.ops.name[index_of(launch)]));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

const std::vector<RocprofRow> expected = {
    {"Cijk_Ailk_Bljk", OpKind::kernel, 0, 1, 21'000, 15'500, "hipLaunchKernel"},
    {"MEMORY_COPY_DEVICE_TO_HOST", OpKind::copy_device_to_host, 1, 2, 37'000, 1'000, "hipMemcpyAsync"},
    {"MEMORY_COPY_HOST_TO_DEVICE", OpKind::copy_host_to_device, 0, 1, 7'000, 3'000, "hipMemcpyAsync"},
    {"hipLaunchKernel", OpKind::launch, -1, 500, 11'000, 5'000, ""},
    {"hipLaunchKernel", OpKind::launch, -1, 500, 17'000, 1'000, ""},
    {"hipMemcpyAsync", OpKind::launch, -1, 500, 1'000, 8'000, ""},
    {"hipMemcpyAsync", OpKind::launch, -1, 500, 19'000, 1'000, ""},
    {"ncclDevKernel_Generic", OpKind::collective, 1, 1, 21'000, 1'000, "hipLaunchKernel"},
};

TEST(RocprofJson, ReadsAStepOnTwoGpus) {
  const Trace trace = read_rocprof(step());
  EXPECT_EQ(rocprof_rows(trace), expected);
  ASSERT_EQ(trace.spans.size(), 2U);  // the marker and the HSA call
  EXPECT_EQ(trace.strings.text(trace.spans.name[0]), "step");
  ASSERT_EQ(trace.devices.size(), 2U);
  EXPECT_EQ(trace.strings.text(trace.devices[1].name), "Instinct MI350X");
  EXPECT_EQ(trace.devices[1].ordinal, 1);
  EXPECT_EQ(trace.provenance.front().producer, "rocprofv3");
  EXPECT_EQ(trace.source_events, 10U);
  EXPECT_TRUE(trace.has(Capability::times));
  EXPECT_FALSE(trace.has(Capability::memory));
}

TEST(RocprofJson, NamesMayComeLast) { EXPECT_EQ(rocprof_rows(read_rocprof(step(true))), expected); }

// A queue is a stream; copies, which have none, have lanes of their own.
TEST(RocprofJson, VersionsWithoutStreams) {
  const auto rows = rocprof_rows(read_rocprof(step(false, false)));
  ASSERT_EQ(rows.size(), expected.size());
  EXPECT_EQ(std::get<3>(rows[0]), 9);
  EXPECT_GT(std::get<3>(rows[1]), 1'000'000);
}

TEST(RocprofJson, ReadsTheFirstOfSeveralProcesses) {
  const std::string one = step();
  std::string two = one;
  two.resize(two.size() - 2);
  two += "," + one.substr(one.find('[') + 1);
  const Trace trace = read_rocprof(two);
  EXPECT_EQ(rocprof_rows(trace), expected);
  EXPECT_EQ(rocprof_count(trace, "other_processes"), 1U);
}

TEST(RocprofJson, DropsRecordsWithoutUsableTimes) {
  std::string text = step();
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace(R"("start_timestamp": 46000)", R"("start_timestamp": 9223372036854775806)");
  replace(R"("end_timestamp": 45500)", R"("end_timestamp": null)");
  replace(R"("end_timestamp": 31000)", R"("end_timestamp": 29000)");
  const Trace trace = read_rocprof(text);
  EXPECT_EQ(rocprof_count(trace, "time_out_of_range"), 1U);
  EXPECT_EQ(rocprof_count(trace, "bad_time"), 1U);
  EXPECT_EQ(rocprof_count(trace, "negative_duration"), 1U);
  EXPECT_EQ(trace.ops.size(), expected.size() - 3);
}

TEST(RocprofJson, RefusesWhatIsDamaged) {
  const std::string good = step();
  const auto says = [](const std::string& text, const std::string& words) {
    const std::string message = rocprof_refusal(text);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("results.json"), std::string::npos) << message;
  };
  says(good.substr(0, good.size() - 1), "ends too early");
  says(good.substr(0, good.size() / 2) + "}", "byte ");
  says(R"({"rocprofiler-sdk-tool": []})", "no records");
  says(R"({"rocprofiler-sdk-tool": [{"buffer_records": {"hip_api": [7, "x", [], {}]}}]})", "no records");
  says(R"({"rocprofiler-sdk-tool": [{"buffer_records": )" + std::string(70, '[') + std::string(70, ']') + "}]}",
       "64 levels");
  says(good + '\0', "broken");
}

TEST(RocprofJson, IsFoundByContent) {
  const std::string path = testing::TempDir() + "rocprof_results.json";
  std::ofstream(path) << step();
  EXPECT_EQ(detect_format(path), TraceFormat::perfetto);
  EXPECT_EQ(read_trace(path).ops.size(), expected.size());
}

}  // namespace
}  // namespace spillway::traces
