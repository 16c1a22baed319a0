#include "traces/formats/perfetto/perfetto_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/input_error.h"
#include "tests/traces/formats/perfetto/perfetto_bytes.h"
#include "traces/formats/kineto/kineto_reader.h"
#include "traces/formats/perfetto/perfetto_packet.h"
#include "traces/formats/read.h"

namespace spillway::traces {
namespace {

using namespace perfetto_bytes;

ByteSource source_of(const std::string& bytes) {
  return ByteSource::from_memory("t.pftrace", std::as_bytes(std::span(bytes.data(), bytes.size())), 1U << 30U);
}

Trace read(const std::string& bytes, bool keep_python = false) {
  ByteSource source = source_of(bytes);
  ReadOptions options;
  options.keep_python = keep_python;
  Trace trace = read_perfetto(source, options);
  trace.check_invariants();
  return trace;
}

Trace read_json(const std::string& text) {
  ByteSource source = source_of(text);
  return read_kineto(source, {});
}

std::uint64_t count_of(const Trace& trace, std::string_view kind) {
  const Finding* const found = trace.finding(kind);
  return found == nullptr ? 0 : found->count;
}

// Place and cause of the refusal.
std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

using Row = std::tuple<std::string, OpKind, int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int>;
std::vector<Row> rows_of(const Trace& trace) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Lane& lane = trace.lanes[index_of(trace.ops.lane[i])];
    rows.emplace_back(trace.strings.text(trace.ops.name[i]), trace.ops.kind[i], lane.device, lane.number,
                      trace.ops.start[i].count(), trace.ops.duration[i].count(),
                      static_cast<std::int64_t>(trace.ops.launched_by[i]), trace.ops.flags[i]);
  }
  return rows;
}

using SpanRow = std::tuple<std::string, SpanKind, std::int64_t, std::int64_t, std::int64_t, std::string>;
std::vector<SpanRow> spans_of(const Trace& trace) {
  std::vector<SpanRow> rows;
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    rows.emplace_back(trace.strings.text(trace.spans.name[i]), trace.spans.kind[i], trace.spans.start[i].count(),
                      trace.spans.duration[i].count(), trace.spans.sequence[i],
                      trace.strings.text(trace.lanes[index_of(trace.spans.lane[i])].name));
  return rows;
}

// One step of torch.profiler in both forms, the same events in the same order.
struct Both {
  std::string json, perfetto;

  void add(std::uint64_t from, std::uint64_t to, std::uint64_t track, const std::string& ids,
           const std::string& category, const std::string& name,
           const std::vector<std::pair<std::string, std::uint64_t>>& arguments) {
    const auto us = [](std::uint64_t ns) {
      return std::to_string(ns / 1000) + "." + std::to_string(1000 + ns % 1000).substr(1);
    };
    std::string said, annotated;
    for (const auto& [key, value] : arguments) {
      said += (said.empty() ? "\"" : ",\"") + key + "\":" + std::to_string(value);
      annotated += argument(key, value);
    }
    json += R"({"ph":"X","cat":")" + category + R"(","name":")" + name + "\"," + ids + R"(,"ts":)" + us(from) +
            R"(,"dur":)" + us(to - from) + R"(,"args":{)" + said + "}},";
    perfetto += slice(from, to, track, category, name, annotated);
  }
};

TEST(Perfetto, ReadsTheSameAsJson) {
  constexpr std::uint64_t base = 1'712'195'495'519'689'813;  // nanoseconds since 1970
  Both both;
  both.json = R"({"traceEvents":[{"ph":"M","name":"thread_name","pid":7,"tid":70,"args":{"name":"main"}},)";
  both.perfetto = process_track(100, 7, "python") + thread_track(101, 100, 7, 70, "main") + named_track(102, "gpu");
  const std::string host = R"("pid":7,"tid":70)", device = R"("pid":0,"tid":20)";
  both.add(base, base + 90'000, 101, host, "user_annotation", "ProfilerStep#3", {});
  both.add(base + 1'000, base + 9'001, 101, host, "cpu_op", "aten::mm",
           {{"Sequence number", 5}, {"Record function id", 9}});
  both.add(base + 2'000, base + 5'500, 101, host, "cuda_runtime", "cudaLaunchKernel", {{"correlation", 11}});
  both.add(base + 9'500, base + 10'250, 101, host, "cuda_runtime", "cudaMemcpyAsync", {{"correlation", 12}});
  both.add(base + 20'000, base + 40'000, 101, host, "cuda_runtime", "cudaDeviceSynchronize", {{"correlation", 13}});
  both.add(base + 21'000, base + 22'000, 101, host, "python_function", "step.py(3): train", {});
  both.add(base + 12'000, base + 24'125, 102, device, "kernel", "ampere_sgemm",
           {{"correlation", 11}, {"device", 0}, {"stream", 20}});
  both.add(base + 25'000, base + 39'000, 102, device, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)",
           {{"correlation", 12}, {"device", 0}, {"stream", 20}, {"bytes", 4096}});
  both.add(base + 100, base + 200, 101, host, "overhead", "Activity Buffer Request", {});
  both.json += "{}]}";
  const Trace json = read_json(both.json), perfetto = read(both.perfetto);
  ASSERT_EQ(json.ops.size(), 5U);
  EXPECT_EQ(rows_of(perfetto), rows_of(json));
  EXPECT_EQ(spans_of(perfetto), spans_of(json));
  ASSERT_EQ(perfetto.steps.size(), 1U);
  EXPECT_EQ(perfetto.steps[0].start, json.steps[0].start);
  EXPECT_EQ(perfetto.steps[0].duration, json.steps[0].duration);
  EXPECT_EQ(perfetto.time_base_ns, json.time_base_ns);
  EXPECT_EQ(perfetto.provenance.front().producer, "torch.profiler (converted)");
  EXPECT_EQ(read(both.perfetto, true).spans.size(), json.spans.size() + 1);
}

// As rocprofv3 writes it: calls on threads; kernels and copies on tracks that say agent and stream; agent 0 is the CPU.
std::string rocprof() {
  const auto ids = [](std::uint64_t correlation) { return argument("corr_id", correlation); };
  return thread_track(1, 0, 500, 500, "main") + named_track(51, "COMPUTE AGENT [2] STREAM [1] (GPU)") +
         named_track(52, "COPY to AGENT [2] STREAM [1] (GPU)") + named_track(53, "COPY to AGENT [0] STREAM [2] (CPU)") +
         named_track(54, "COMPUTE AGENT [3] STREAM [1] (GPU)") +
         slice(15'000, 17'000, 1, "hsa_api", "hsa_amd_memory_async_copy", ids(90)) +
         slice(10'000, 18'000, 1, "hip_api", "hipMemcpyAsync", ids(4)) +
         slice(20'000, 25'000, 1, "hip_api", "hipLaunchKernel", ids(5)) +
         slice(26'000, 27'000, 1, "hip_api", "hipLaunchKernel", ids(6)) +
         slice(28'000, 29'000, 1, "hip_api", "hipMemcpyAsync", ids(7)) +
         slice(9'000, 60'000, 1, "marker_api", "step", ids(8)) +
         slice(16'000, 19'000, 52, "memory_copy", "MEMORY_COPY_HOST_TO_DEVICE",
               ids(90) + argument("copy_bytes", 1 << 20) + text_argument("src_agent", "Agent-0") +
                   text_argument("dst_agent", "Agent-2")) +
         slice(30'000, 45'500, 51, "kernel_dispatch", "Cijk_Ailk_Bljk", ids(5) + argument("queue", 9)) +
         slice(30'000, 31'000, 54, "kernel_dispatch", "ncclDevKernel_Generic", ids(6)) +
         slice(46'000, 47'000, 53, "memory_copy", "MEMORY_COPY_DEVICE_TO_HOST",
               ids(7) + text_argument("src_agent", "Agent-3") + text_argument("dst_agent", "Agent-0"));
}

TEST(Perfetto, ReadsRocprofv3) {
  const Trace trace = read(rocprof());
  const auto us = [](std::int64_t n) { return n * 1'000'000; };
  const std::vector<Row> expected = {
      {"hipMemcpyAsync", OpKind::launch, -1, 500, us(1), us(8), -1, 0},
      {"hipLaunchKernel", OpKind::launch, -1, 500, us(11), us(5), -1, 0},
      {"hipLaunchKernel", OpKind::launch, -1, 500, us(17), us(1), -1, 0},
      {"hipMemcpyAsync", OpKind::launch, -1, 500, us(19), us(1), -1, 0},
      {"MEMORY_COPY_HOST_TO_DEVICE", OpKind::copy_host_to_device, 0, 1, us(7), us(3), 0, 0},
      {"Cijk_Ailk_Bljk", OpKind::kernel, 0, 1, us(21), us(15) + 500'000, 1, 0},
      {"MEMORY_COPY_DEVICE_TO_HOST", OpKind::copy_device_to_host, 1, 2, us(37), us(1), 3, 0},
      {"ncclDevKernel_Generic", OpKind::collective, 1, 1, us(21), us(1), 2, 0},
  };
  auto found = rows_of(trace);
  for (Row& row : found)
    if (std::get<6>(row) == static_cast<std::int64_t>(OpId::none)) std::get<6>(row) = -1;
  std::sort(found.begin(), found.end());
  auto sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(found, sorted);
  EXPECT_EQ(trace.spans.size(), 2U);  // the marker and the HSA call
  EXPECT_EQ(trace.provenance.front().producer, "rocprofv3");
  EXPECT_TRUE(trace.has(Capability::times));
  EXPECT_FALSE(trace.has(Capability::memory));
}

// Names, categories, arguments and their texts said once and then by number; a default track; a clock that counts on.
//   snapshot: boot 5,000,000 ns, clock 64 at 7 in units of 1,000 ns; packets +3, +10, +2: 5,003,000, 5,013,000, ...
TEST(Perfetto, ReadsNumberedNamesAndClocks) {
  const std::string clocks = bytes(6, bytes(1, number(1, 6) + number(2, 5'000'000)) +
                                          bytes(1, number(1, 64) + number(2, 7) + number(3, 1) + number(4, 1000)) +
                                          bytes(1, number(1, 1) + number(2, 1'700'000'000'005'000'000)));
  const std::string state = number(13, 1) + bytes(59, number(58, 64) + bytes(11, number(11, 9)));
  const std::string interned =
      bytes(12, bytes(1, number(1, 1) + bytes(2, "kernel")) + bytes(2, number(1, 4) + bytes(2, "gemm")) +
                    bytes(3, number(1, 2) + bytes(2, "stream")));
  const std::string trace_bytes =
      packet(clocks) + packet(state) +
      packet(at(3) + number(13, 2) + interned +
             bytes(11, number(9, 1) + number(3, 1) + number(10, 4) + bytes(4, number(1, 2) + number(4, 6)))) +
      packet(at(10) + bytes(11, number(9, 2))) +
      packet(at(2) + bytes(11, number(9, 1) + bytes(3, varint(1)) + number(10, 4))) +
      packet(at(4) + bytes(11, number(9, 2)));
  const Trace trace = read(trace_bytes);
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.strings.text(trace.ops.name[0]), "gemm");
  std::vector<Picos> starts(trace.ops.start.begin(), trace.ops.start.end());
  std::sort(starts.begin(), starts.end());
  EXPECT_EQ(starts, (std::vector<Picos>{Picos(0), microseconds(12)}));
  EXPECT_EQ(trace.time_base_ns, 1'700'000'000'005'003'000);
  EXPECT_EQ(count_of(trace, "unknown_clock"), 0U);
  // After the state is cleared, the numbers mean nothing.
  const Trace lost =
      read(trace_bytes + packet(number(13, 1) + at(9'000'000) + bytes(11, number(9, 1) + number(10, 4))) +
           packet(at(9'001'000) + bytes(11, number(9, 2))));
  EXPECT_EQ(count_of(lost, "lost_name"), 1U);
}

TEST(Perfetto, PairsByOrderThenByTime) {
  // On one track: the inner ones end first; the last range begins in another writer's packets, after its end.
  const Trace trace = read(thread_track(1, 0, 5, 5, "t") + begin_event(1'000, 1, "app", "outer") +
                           slice(2'000, 3'000, 1, "app", "inner") + end_event(9'000, 1) + end_event(20'000, 1) +
                           begin_event(12'000, 1, "app", "late") + end_event(500, 1));
  // The end at 500 closes `late`, which begins after it: a negative length, dropped; that at 20,000 is left.
  EXPECT_EQ(count_of(trace, "negative_duration"), 1U);
  EXPECT_EQ(count_of(trace, "end_without_begin"), 1U);
  const Trace crossed =
      read(thread_track(1, 0, 5, 5, "t") + end_event(20'000, 1) + slice(30'000, 31'000, 1, "app", "a") +
           begin_event(12'000, 1, "app", "late") + begin_event(40'000, 1, "app", "endless"));
  ASSERT_EQ(crossed.spans.size(), 2U);
  EXPECT_EQ(crossed.spans.duration[0], microseconds(8));
  EXPECT_EQ(count_of(crossed, "begin_without_end"), 1U);
}

// Processes named as XLA names them: the same rules as for its JSON.
TEST(Perfetto, ReadsXlasTracks) {
  const Trace trace = read(process_track(1, 3, "/device:GPU:1") + thread_track(2, 1, 3, 14, "Stream #14(Compute)") +
                           thread_track(3, 1, 3, 15, "XLA Ops") + slice(1'000, 2'000, 2, "", "fusion") +
                           slice(1'000, 2'000, 3, "", "again"));
  ASSERT_EQ(trace.ops.size(), 1U);
  const Lane& lane = trace.lanes[index_of(trace.ops.lane[0])];
  EXPECT_EQ(lane.device, 1);
  EXPECT_EQ(lane.number, 14);
  EXPECT_EQ(count_of(trace, "times_only"), 1U);
}

TEST(Perfetto, UnfoldsCompressedPackets) {
  const std::string plain = rocprof();
  std::string deflated(compressBound(plain.size()), '\0');
  uLongf size = deflated.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(plain.data()),
                     plain.size()),
            Z_OK);
  deflated.resize(size);
  EXPECT_EQ(rows_of(read(packet(bytes(50, deflated)))), rows_of(read(plain)));
  EXPECT_NE(refusal(packet(bytes(50, deflated.substr(0, size / 2)))).find("damaged packet"), std::string::npos);
}

TEST(Perfetto, RefusesWhatIsDamaged) {
  const std::string good = slice(1'000, 2'000, 1, "kernel", "k");
  const auto says = [&](const std::string& bytes, const std::string& words) {
    const std::string message = refusal(bytes);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("t.pftrace"), std::string::npos) << message;
  };
  const std::string after = "byte " + std::to_string(good.size());
  says(good + bytes(1, bytes(8, "time")), after);                       // a time that is a text
  says(good + bytes(1, number(11, 3)), "damaged packet");               // an event that is a number
  says(good + number(1, 3), after);                                     // a packet that is a number
  says(good + bytes(1, bytes(11, "\x0b")), "damaged packet");           // a group
  says(good + varint(10) + varint(std::uint64_t{65} << 20), "64 MiB");  // a packet larger than its file
  says(good + std::string(1, '\x0a') + std::string(11, '\xff'), "64 bits");
  says(named_track(1, "a", 2) + named_track(2, "b", 1) + good, "circle");
  says(named_track(1, "a", 1) + good, "circle");
  std::string deep;
  for (std::uint64_t i = 1; i < 80; ++i) deep += named_track(i, "n", i + 1);
  says(deep + good, "deeper than 64");
  std::string open;
  for (int i = 0; i < 65'537; ++i) open += begin_event(1'000, 1, "app", "n");
  says(open, "65,536");
  says(packet(bytes(60, number(1, 1))), "no events");
  says("", "no events");
}

// What is whole is kept where the end is missing; times and arguments beyond reason are findings.
TEST(Perfetto, KeepsWhatIsWhole) {
  const std::string good = slice(1'000, 2'000, 1, "kernel", "k");
  const Trace cut = read(good + good.substr(0, good.size() - 3));
  EXPECT_EQ(cut.ops.size(), 1U);
  EXPECT_EQ(count_of(cut, "truncated_file"), 1U);
  const Trace odd =
      read(good + slice(5'000, 4'000, 1, "kernel", "backwards") +
           slice(~std::uint64_t{0}, ~std::uint64_t{0}, 1, "kernel", "never") +
           slice(3'000, 3'500, 1, "kernel", "inf", bytes(4, bytes(10, "bytes") + fixed64(5, 0x7ff0000000000000))) +
           packet(bytes(11, number(9, 1))));
  EXPECT_EQ(odd.ops.size(), 2U);
  EXPECT_EQ(count_of(odd, "negative_duration"), 1U);
  EXPECT_EQ(count_of(odd, "time_out_of_range"), 2U);
  EXPECT_EQ(count_of(odd, "bad_time"), 1U);
}

TEST(Perfetto, IsFoundByItsContent) {
  EXPECT_TRUE(looks_like_perfetto(rocprof()));
  EXPECT_FALSE(looks_like_perfetto("\n{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\"}]}"));
  EXPECT_FALSE(
      looks_like_perfetto(std::string("\x0a\x0a\x08"
                                      "12345678",
                                      11)));  // Chakra: a version of 8 letters
  EXPECT_FALSE(looks_like_perfetto("\n\nOperatorID,Name"));
  // A first packet of 123 bytes: its length is an opening brace.
  const std::string first = bytes(1, number(10, 1) + bytes(36, std::string(118, 'x')));
  ASSERT_EQ(first[1], '{');
  const std::string path = testing::TempDir() + "braces.json";
  std::ofstream(path, std::ios::binary) << first << rocprof();
  EXPECT_EQ(detect_format(path), TraceFormat::perfetto);
  const Trace trace = read_trace(path);
  EXPECT_EQ(trace.ops.size(), 8U);
}

}  // namespace
}  // namespace spillway::traces
