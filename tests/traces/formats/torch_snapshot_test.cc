#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/input_error.h"
#include "tests/traces/test_files.h"
#include "traces/formats/torch_snapshot_reader.h"
#include "traces/formats/torch_snapshot_writer.h"

namespace spillway::traces {
namespace {

using namespace std::string_literals;
using test::shared_file;

Trace read_file(const std::string& path) {
  ByteSource source = ByteSource::open(path, test::no_limit);
  return read_torch_snapshot(source, {});
}

std::map<MemoryAction, int> count_actions(const Trace& trace) {
  std::map<MemoryAction, int> counts;
  for (const MemoryEvent& event : trace.memory_events) ++counts[event.action];
  return counts;
}

// Two devices, an out-of-memory event, an expandable segment, pending blocks, an address above 2^63.
Trace snapshot_trace() {
  Trace t;
  t.memory_size_is_requested = true;
  t.time_base_ns = 1'700'000'000'000'000'000;
  const LaneId zero = t.lane({.kind = LaneKind::stream, .device = 0, .number = 0});
  const LaneId one = t.lane({.kind = LaneKind::stream, .device = 1, .number = 7});
  const OpId op = t.append_op({.name = t.strings.intern("gemm"), .lane = zero});
  const std::uint64_t high = 0xffff'8000'0000'0000U;
  t.memory_events = {
      {.time = microseconds(0), .address = Addr(4096), .bytes = Bytes(100), .anchor = op, .stream = zero},
      {.time = microseconds(1), .address = Addr(high), .bytes = Bytes(2'000'000'000'000), .device = 1, .stream = one},
      {.time = microseconds(2),
       .address = Addr(4096),
       .bytes = Bytes(100),
       .anchor = op,
       .action = MemoryAction::free_requested,
       .stream = zero},
      {.time = microseconds(3), .bytes = Bytes(5), .action = MemoryAction::out_of_memory, .stream = zero},
      {.time = microseconds(4),
       .address = Addr(8192),
       .bytes = Bytes(20),
       .action = MemoryAction::segment_map,
       .stream = zero},
  };
  t.memory_segments = {{.address = Addr(4096),
                        .total = Bytes(1024),
                        .stream = zero,
                        .large = true,
                        .expandable = true,
                        .first_block = 0,
                        .block_count = 2}};
  t.memory_blocks = {{Addr(4096), Bytes(512), Bytes(100), BlockState::pending_free},
                     {Addr(4608), Bytes(512), Bytes(512), BlockState::inactive}};
  return t;
}

void expect_same_memory(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.memory_events.size(), b.memory_events.size());
  for (std::size_t i = 0; i < a.memory_events.size(); ++i) {
    const MemoryEvent& x = a.memory_events[i];
    const MemoryEvent& y = b.memory_events[i];
    EXPECT_EQ(x.time, y.time) << i;
    EXPECT_EQ(x.address, y.address) << i;
    EXPECT_EQ(x.bytes, y.bytes) << i;
    EXPECT_EQ(x.action, y.action) << i;
    EXPECT_EQ(x.device, y.device) << i;
    EXPECT_EQ(a.lanes[index_of(x.stream)].number, b.lanes[index_of(y.stream)].number) << i;
  }
  ASSERT_EQ(a.memory_segments.size(), b.memory_segments.size());
  for (std::size_t i = 0; i < a.memory_segments.size(); ++i) {
    EXPECT_EQ(a.memory_segments[i].address, b.memory_segments[i].address);
    EXPECT_EQ(a.memory_segments[i].total, b.memory_segments[i].total);
    EXPECT_EQ(a.memory_segments[i].large, b.memory_segments[i].large);
    EXPECT_EQ(a.memory_segments[i].expandable, b.memory_segments[i].expandable);
    EXPECT_EQ(a.memory_segments[i].block_count, b.memory_segments[i].block_count);
  }
  ASSERT_EQ(a.memory_blocks.size(), b.memory_blocks.size());
  for (std::size_t i = 0; i < a.memory_blocks.size(); ++i) {
    EXPECT_EQ(a.memory_blocks[i].address, b.memory_blocks[i].address);
    EXPECT_EQ(a.memory_blocks[i].requested, b.memory_blocks[i].requested);
    EXPECT_EQ(a.memory_blocks[i].state, b.memory_blocks[i].state);
  }
}

std::string text_of(const std::string& word) { return std::string("\x8c") + static_cast<char>(word.size()) + word; }

// A list of `outer` references to a list of `inner` references to one row of these members.
std::string shared_rows(const std::string& members, std::size_t outer, std::size_t inner) {
  const auto times = [](std::size_t count, const std::string& what) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += what;
    return all;
  };
  const std::string rows = "](}(" + members + "u\x94" + times(inner - 1, std::string("h\0", 2)) + "e\x94";
  return "](" + rows + times(outer - 1, "h\x01") + "e";
}

std::string refusal_of(const std::string& pickle) {
  ByteSource source = ByteSource::from_memory("shared.pickle", std::as_bytes(std::span(pickle)), test::no_limit);
  try {
    read_torch_snapshot(source, {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// n references to n references are n * n rows, in a file of n letters; a few times the same is still read.
TEST(TorchSnapshotTest, RowsThatStandInManyPlacesAreRefused) {
  const std::string event =
      text_of("action") + text_of("alloc") + text_of("addr") + "M\x01\x10" + text_of("size") + "K\x10";
  const std::string no_event = text_of("action") + text_of("no such thing");
  for (const std::string& members : {event, no_event}) {
    const std::string shared = "\x80\x04}(" + text_of("device_traces") + shared_rows(members, 100, 100) + "u.";
    EXPECT_NE(refusal_of(shared).find("over and over"), std::string::npos) << refusal_of(shared);
    EXPECT_EQ(refusal_of("\x80\x04}(" + text_of("device_traces") + shared_rows(members, 1, 2) + "u."), "");
  }
  const std::string block = text_of("size") + "K\x10";
  std::string segments = "\x80\x04}(" + text_of("segments") + "](}(" + text_of("address") + "K\0"s +
                         text_of("total_size") + "K\x10" + text_of("blocks") + "](}(" + block + "u";
  for (int i = 0; i < 200; ++i) segments += "}(" + block + "u";
  segments += "eu\x94";
  for (int i = 0; i < 200; ++i) segments += std::string("h\0", 2);
  EXPECT_NE(refusal_of(segments + "eu.").find("over and over"), std::string::npos) << refusal_of(segments + "eu.");
}

// read(write(t)) has the same memory side as t.
TEST(TorchSnapshotTest, RoundTrip) {
  const std::string path = test::temporary_path("snapshot.pickle");
  const Trace before = snapshot_trace();
  {
    OutputFile out(path);
    write_torch_snapshot(before, out);
    out.commit();
  }
  const Trace after = read_file(path);
  expect_same_memory(before, after);
  EXPECT_EQ(after.time_base_ns, before.time_base_ns);
  EXPECT_TRUE(after.memory_size_is_requested);
  EXPECT_TRUE(after.has(Capability::memory));
  // Python itself must be able to load it, with the keys that memory_viz asks for.
  const std::string check =
      "python3 -c \"import pickle,sys; d=pickle.load(open('" + path +
      "','rb')); e=d['device_traces'][0]; "
      "assert len(d['device_traces'])==2 and e[0]['action']=='alloc' and e[0]['frames'][0]['name']=='gemm'; "
      "assert 'device_free' in e[2] and d['segments'][0]['blocks'][0]['state']=='active_pending_free'; "
      "assert d['device_traces'][1][0]['addr']==0xffff800000000000\"";
  if (std::system("python3 -c 1 2>/dev/null") == 0) {
    EXPECT_EQ(std::system(check.c_str()), 0);
  }
  std::filesystem::remove(path);
}

TEST(TorchSnapshotTest, NotASnapshot) {
  ByteSource source = test::source_of(std::string_view("\x80\x04}.", 4));
  EXPECT_THROW(read_torch_snapshot(source, {}), InputError);
}

// Blocks of very old snapshots carry no address: each lies behind the one before it.
TEST(TorchSnapshotTest, BlocksWithoutAddress) {
  using namespace std::string_literals;
  const std::string bytes =
      "\x80\x02}X\x08\0\0\0segments](}(X\x07\0\0\0addressM\0\x10X\x0a\0\0\0total_sizeM\0\x04X\x06\0\0\0blocks]"s +
      "(}(X\x04\0\0\0sizeM\0\x02u}(X\x04\0\0\0sizeM\0\x02ueues."s;
  ByteSource source = test::source_of(bytes);
  const Trace trace = read_torch_snapshot(source, {});
  ASSERT_EQ(trace.memory_blocks.size(), 2U);
  EXPECT_EQ(trace.memory_blocks[1].address, Addr(0x1200));
}

struct Expected {
  const char* file;
  std::size_t segments;
  int allocs, frees;
};

class RealSnapshotTest : public ::testing::TestWithParam<Expected> {};

// Counts taken independently with Python's pickle.
TEST_P(RealSnapshotTest, CountsAgreeWithPython) {
  const auto path = shared_file(std::string("memory/") + GetParam().file);
  if (!path) GTEST_SKIP() << "no shared data beside the checkout";
  const Trace trace = read_file(*path);
  auto counts = count_actions(trace);
  EXPECT_EQ(trace.memory_segments.size(), GetParam().segments);
  EXPECT_EQ(counts[MemoryAction::allocate], GetParam().allocs);
  EXPECT_EQ(counts[MemoryAction::free_completed], GetParam().frees);
  EXPECT_EQ(trace.finding("bad_memory_event"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Files, RealSnapshotTest,
    ::testing::Values(Expected{"bcrafton__assignment2-systems/memory_snapshot.pickle", 96, 2162, 2162},
                      Expected{"facebookresearch__mosaic/test__snapshots__output.pickle", 5, 520, 520},
                      Expected{"notHanmin__assignment2-systems/memory_snapshot.pickle", 999, 6488, 6488},
                      Expected{"notHanmin__assignment2-systems/memory_snapshot_forward.pickle", 1722, 4138, 2405},
                      Expected{"notHanmin__assignment2-systems/memory_snapshot_forward_without_mixed.pickle", 1423,
                               3368, 2116},
                      Expected{"silmont2000__assignment2-systems/mem_snapshot.pickle", 9, 36, 26},
                      Expected{"silmont2000__assignment2-systems/memory_forward_bf16_128.pickle", 43, 937, 937},
                      Expected{"silmont2000__assignment2-systems/memory_forward_fp32_128.pickle", 29, 681, 681},
                      Expected{"wedsonlin__cs336/medium_1024_training_memory_snapshot.pickle.gz", 234, 7591, 7370},
                      Expected{"wedsonlin__cs336/medium_128_training_memory_snapshot.pickle.gz", 377, 6526, 6305},
                      Expected{"wedsonlin__cs336/medium_256_training_memory_snapshot.pickle.gz", 495, 6624, 6403},
                      Expected{"wedsonlin__cs336/medium_512_training_memory_snapshot.pickle.gz", 400, 7591, 7370}));

}  // namespace
}  // namespace spillway::traces
