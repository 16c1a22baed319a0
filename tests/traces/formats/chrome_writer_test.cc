#include "traces/formats/chrome_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/traces/test_files.h"
#include "traces/formats/kineto/kineto_reader.h"

namespace spillway::traces {
namespace {

Trace small_trace() {
  Trace t;
  const LaneId host = t.lane({.kind = LaneKind::host_thread, .number = 11});
  const LaneId stream = t.lane({.kind = LaneKind::stream, .device = 0, .number = 7});
  for (int i = 0; i < 3; ++i) {
    const OpId launch = t.append_op({.name = t.strings.intern("cudaLaunchKernel"),
                                     .kind = OpKind::launch,
                                     .lane = host,
                                     .start = microseconds(10 * i + 1),
                                     .duration = nanoseconds(2500)});
    t.append_op({.name = t.strings.intern("k\"" + std::to_string(i)),
                 .kind = OpKind::kernel,
                 .lane = stream,
                 .start = microseconds(10 * i + 5),
                 .duration = nanoseconds(4001),
                 .launched_by = launch});
  }
  t.memory_events = {{.time = microseconds(2), .bytes = Bytes(100)},
                     {.time = microseconds(3), .bytes = Bytes(60), .action = MemoryAction::free_completed}};
  return t;
}

std::string chrome_text(const Trace& trace, std::span<const ChromeCounter> counters = {}) {
  const std::string path = test::temporary_path("chrome.json");
  OutputFile out(path);
  write_chrome_timeline(trace, counters, out);
  out.commit();
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::filesystem::remove(path);
  return text;
}

// Sound JSON; each launched kernel has an s and an f of one id; times are exact; the counter is 100, then 40.
TEST(ChromeWriterTest, Events) {
  const auto file = nlohmann::json::parse(chrome_text(small_trace()));
  int starts = 0, finishes = 0;
  std::vector<std::int64_t> bytes;
  for (const auto& e : file["traceEvents"]) {
    starts += e["ph"] == "s";
    finishes += e["ph"] == "f" && e["bp"] == "e";
    if (e["ph"] == "C") bytes.push_back(e["args"]["bytes"]);
    if (e["ph"] == "X" && e["name"] == "k\"1") {
      EXPECT_EQ(e["dur"].dump(), "4.001");
    }
  }
  EXPECT_EQ(starts, 3);
  EXPECT_EQ(finishes, 3);
  EXPECT_EQ(bytes, (std::vector<std::int64_t>{100, 40}));
}

// A counter of the caller's own is beside its rank's GPU; what is reserved has one; a transfer says what it moves.
TEST(ChromeWriterTest, CountersAndTensors) {
  Trace trace = small_trace();
  trace.memory_events[0].total_reserved = Bytes(512);
  trace.tensors.name.push_back(trace.strings.intern("layers.3.h"));
  trace.tensors.bytes.emplace_back(64);
  const OpId store = trace.append_op({.name = trace.strings.intern("offload store"),
                                      .kind = OpKind::storage_write,
                                      .lane = trace.ops.lane.back(),
                                      .start = microseconds(40),
                                      .duration = microseconds(2)});
  trace.uses.push_back({.op = store, .tensor = TensorId{0}});
  const std::vector<ChromeCounter> counters = {{"PCIe to GPU", "bytes per second", 0, {0, 2'000'000}, {1.5, 0}}};
  const auto file = nlohmann::json::parse(chrome_text(trace, counters));
  std::vector<double> curve;
  int reserved = 0;
  for (const auto& e : file["traceEvents"]) {
    if (e["ph"] == "C" && e["name"] == "PCIe to GPU") curve.push_back(e["args"]["bytes per second"]);
    if (e["ph"] == "C" && e["name"].get<std::string>().ends_with("reserved bytes")) reserved = e["args"]["bytes"];
    if (e["ph"] == "X" && e["name"] == "offload store") {
      EXPECT_EQ(e["args"]["tensor"], "layers.3.h");
    }
  }
  EXPECT_EQ(curve, (std::vector<double>{1.5, 0}));
  EXPECT_EQ(reserved, 512);
}

// Our Kineto reader gives back the same device ops with the same durations and launches.
TEST(ChromeWriterTest, KinetoReaderReadsItBack) {
  const Trace before = small_trace();
  const std::string text = chrome_text(before);
  ByteSource source = test::source_of(text);
  const Trace after = read_kineto(source, {});
  std::vector<Picos> expected, found;
  for (std::size_t i = 0; i < before.ops.size(); ++i)
    if (is_device_work(before.ops.kind[i])) expected.push_back(before.ops.duration[i]);
  for (std::size_t i = 0; i < after.ops.size(); ++i) {
    if (!is_device_work(after.ops.kind[i])) continue;
    found.push_back(after.ops.duration[i]);
    EXPECT_NE(after.ops.launched_by[i], OpId::none);
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace spillway::traces
