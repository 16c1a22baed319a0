#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/input_error.h"
#include "tests/traces/test_files.h"
#include "traces/formats/spillway_binary.h"
#include "traces/formats/spillway_json.h"
#include "traces/trace_columns.h"

namespace spillway::traces {
namespace {

// All numbers of a trace, column by column, for comparing.
class Dump {
 public:
  void table(const char* name, std::size_t rows) {
    text << "\n" << name << " " << rows;
    rows_ = rows;
  }
  bool optional_table(const char* name, std::size_t rows) {
    table(name, rows);
    return true;
  }
  template <class Resize, class Get, class Set>
  void column(const char* name, const ColumnType&, const Resize&, const Get& get, const Set&) {
    text << "\n  " << name;
    for (std::size_t i = 0; i < rows_; ++i) text << " " << get(i);
  }
  std::stringstream text;

 private:
  std::size_t rows_ = 0;
};

std::string dump(Trace trace) {
  Dump out;
  visit_trace(trace, out);
  for (std::size_t i = 0; i < trace.strings.size(); ++i)
    out.text << "\n" << trace.strings.text(static_cast<StringId>(i));
  const TraceRemainder remainder = remainder_of(trace);
  for (const auto& t : remainder.texts) out.text << "\n" << t;
  for (const auto n : remainder.numbers) out.text << " " << n;
  return out.text.str();
}

// Fills every column with numbers in its range; ids refer to what exists; edges run forward.
class RandomTrace {
 public:
  explicit RandomTrace(std::uint32_t seed) : random_(seed) {}

  Trace make() {
    for (int i = 0; i < 5; ++i) trace_.strings.intern("text \"" + std::to_string(below(1000)) + "\" \xC3\xA9\n");
    rows_ = 1 + below(40);
    visit_trace(trace_, *this);
    Trace& t = trace_;
    for (std::size_t i = 0; i < rows_; ++i) {
      t.ops.lane[i] = static_cast<LaneId>(below(rows_));
      t.ops.launched_by[i] = below(2) != 0U ? OpId::none : static_cast<OpId>(below(rows_));
      t.ops.span[i] = below(2) != 0U ? SpanId::none : static_cast<SpanId>(below(rows_));
      t.ops.step[i] = below(2) != 0U ? no_index16 : static_cast<std::uint16_t>(below(rows_));
      t.ops.duration[i] = below(4) == 0U ? unknown_time : Picos(static_cast<std::int64_t>(random_() >> 3U));
      t.spans.lane[i] = LaneId::none;
      t.syncs[i] = {.op = static_cast<OpId>(below(rows_)),
                    .lane = LaneId::none,
                    .event = static_cast<OpId>(below(rows_)),
                    .inferred = below(2) != 0U};
      t.uses[i].op = static_cast<OpId>(below(rows_));
      t.uses[i].tensor = static_cast<TensorId>(below(rows_));
      t.edges[i].from = static_cast<OpId>(0);
      t.edges[i].to = static_cast<OpId>(rows_ - 1);
      t.steps[i].start = Picos(static_cast<std::int64_t>(below(1000)));
      t.steps[i].duration = Picos(static_cast<std::int64_t>(below(1000)));
      t.collectives[i].op = static_cast<OpId>(below(rows_));
      t.memory_events[i].anchor = static_cast<OpId>(below(rows_));
      t.memory_events[i].tensor = TensorId::none;
      t.memory_events[i].stream = static_cast<LaneId>(below(rows_));
      t.memory_segments[i].stream = LaneId::none;
      t.capture_fit.gaps[i].stream = t.capture_fit.gaps[i].launcher = static_cast<LaneId>(below(rows_));
      t.memory_segments[i].first_block = 0;
      t.memory_segments[i].block_count = static_cast<std::uint32_t>(below(rows_));
    }
    for (Edge& edge : t.carried) {
      edge.from = static_cast<OpId>(below(rows_));
      edge.to = static_cast<OpId>(below(rows_));
    }
    for (StartUpEvent& event : t.start_up) {
      event.stream = static_cast<LaneId>(below(rows_));
      event.tensor = static_cast<TensorId>(below(rows_));
      event.block = static_cast<std::uint32_t>(below(t.start_up.size()));
      event.allocates = event.allocates || event.late;
    }
    for (UnexplainedWait& wait : t.unexplained_waits)
      wait = {static_cast<OpId>(below(rows_)), Picos(static_cast<std::int64_t>(below(1000)))};
    for (std::size_t i = 0; i < t.stack_frames.size(); ++i)
      t.stack_frames[i].caller = i == 0 ? no_stack : static_cast<std::uint32_t>(below(i));
    const auto some_stack = [&] {
      return t.stack_frames.empty() ? no_stack : static_cast<std::uint32_t>(below(t.stack_frames.size()));
    };
    for (MemoryEvent& event : t.memory_events) event.stack = some_stack();
    for (MemoryBlock& block : t.memory_blocks) block.stack = some_stack();
    if (rows_ == 1) t.edges.clear();
    t.time_base_ns = INT64_MAX;
    t.source_events = UINT64_MAX;
    t.memory_size_is_requested = true;
    t.set(Capability::memory, true);
    t.set(Capability::edges);
    t.provenance = {{"a", "b", "c", ""}, {"", "x", "", "y"}};
    t.provenance[1].rank = 3;
    t.provenance[0].world_size = 8;
    t.capture_fit.launch_to_start = Picos(7);
    t.capture_fit.unblocked_launch = unknown_time;
    t.capture_fit.launch_queue_depth = 1022;
    t.capture_fit.unexplained_delay = Picos(11);
    t.capture_fit.blocking_copy_overhead = Picos(13);
    t.note("kind", "example", "remedy", true);
    t.note("kind", "example 2", "remedy", true);
    return trace_;
  }

  void table(const char*, std::size_t) {}
  bool optional_table(const char*, std::size_t) { return below(2) != 0U; }
  template <class Resize, class Get, class Set>
  void column(const char*, const ColumnType& type, const Resize& resize, const Get&, const Set& set) {
    resize(rows_);
    for (std::size_t i = 0; i < rows_; ++i) {
      const std::size_t limit = type.is_text ? trace_.strings.size() : type.names.size();
      std::int64_t number = limit != 0 ? static_cast<std::int64_t>(below(limit)) : static_cast<std::int64_t>(random_());
      if (limit == 0 && below(4) == 0U) number = below(2) != 0U ? INT64_MIN : INT64_MAX;
      while (!set(i, number)) number /= 7;  // into the range of narrow fields
    }
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  std::mt19937_64 random_;
  Trace trace_;
  std::size_t rows_ = 0;
};

std::string written(const Trace& trace, void (*write)(const Trace&, OutputFile&)) {
  const std::string path = test::temporary_path("form");
  OutputFile out(path);
  write(trace, out);
  out.commit();
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

Trace read_binary(const std::string& bytes) {
  ByteSource source = test::source_of(bytes);
  return read_spillway_binary(source, {});
}
Trace read_json(const std::string& bytes) {
  ByteSource source = test::source_of(bytes);
  return read_spillway_json(source, {});
}

class SpillwayFormsTest : public ::testing::TestWithParam<std::uint32_t> {};

// For every trace t and both forms: read(write(t)) = t in every field.
TEST_P(SpillwayFormsTest, RoundTripIsExact) {
  const Trace trace = RandomTrace(GetParam()).make();
  const std::string expected = dump(trace);
  EXPECT_EQ(dump(read_binary(written(trace, write_spillway_binary))), expected);
  EXPECT_EQ(dump(read_json(written(trace, write_spillway_json))), expected);
}
INSTANTIATE_TEST_SUITE_P(Seeds, SpillwayFormsTest, ::testing::Range(1U, 40U));

TEST(SpillwayFormsTest, EmptyTrace) {
  EXPECT_EQ(dump(read_binary(written({}, write_spillway_binary))), dump({}));
  EXPECT_EQ(dump(read_json(written({}, write_spillway_json))), dump({}));
}

// No truncation and no single damaged byte gives anything but an InputError or, where the byte does not matter, a
// trace.
TEST(SpillwayFormsTest, DamagedBinary) {
  const std::string good = written(RandomTrace(7).make(), write_spillway_binary);
  for (std::size_t length = 0; length < good.size(); length += 13)
    EXPECT_THROW(read_binary(good.substr(0, length)), InputError);
  int refused = 0;
  for (std::size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    try {
      read_binary(bad);
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(good.size() / 7 * 9 / 10));
}

// A section that claims 10 GB, rows beyond its bytes, a later version.
TEST(SpillwayFormsTest, HostileBinary) {
  using namespace std::string_literals;
  const std::string head = "SPLWTRC1\x01\0\0\0"s;
  EXPECT_THROW(read_binary(head + "\x07strings"s + "\x01\0\0\0\0\0\0\0\0\0\0\x80\x02\0\0\0"s), InputError);
  EXPECT_THROW(read_binary(head + "\x07strings"s + "\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\0"s), InputError);
  EXPECT_THROW(read_binary("SPLWTRC1\x02\0\0\0"s), InputError);
  EXPECT_THROW(read_binary("SPLWTRC2\x01\0\0\0"s), InputError);
}

// Zeros take next to nothing as a file: a section has no more than its rows need, and all of them together no more than
// the file's size allows.
TEST(SpillwayFormsTest, SectionsThatUnfoldAreBounded) {
  using namespace std::string_literals;
  const auto number = [](std::uint64_t value) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xffU);
    return bytes;
  };
  const auto section = [&](const std::string& name, std::uint64_t rows, const std::string& raw) {
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 3));
    return std::string(1, static_cast<char>(name.size())) + name + number(rows) + number(packed.size()) + packed;
  };
  const auto error_of = [](const std::string& bytes) -> std::string {
    try {
      read_binary(bytes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string head = "SPLWTRC1\x01\0\0\0"s, zeros(30 << 20, '\0');
  EXPECT_THAT(error_of(head + section("strings", 0, zeros)), testing::HasSubstr("bytes left over"));
  EXPECT_THAT(error_of(head + section("strings", zeros.size(), zeros)), testing::HasSubstr("of memory"));
  const std::string none = head + section("strings", 0, "") + section("about.texts", 0, "");
  EXPECT_THAT(error_of(none + section("about.numbers", 12, zeros)), testing::HasSubstr("bytes left over"));
  EXPECT_THAT(error_of(none + section("about.numbers", zeros.size(), zeros)), testing::HasSubstr("of memory"));
  // What fills the reader's buffer to the last byte is whole.
  EXPECT_THAT(error_of(none + section("about.numbers", 1 << 17, zeros.substr(0, 1 << 17))),
              testing::HasSubstr("does not fit together"));
}

TEST(SpillwayFormsTest, HostileJson) {
  const std::string head = R"({"schema":"spillway.trace","version":1)";
  for (const char* rest :
       {"", "}x", R"(,"ops":3})", R"(,"ops":{"kind":3}})", R"(,"ops":{"kind":["kernel"],"name":[]}})",
        R"(,"ops":{"kind":["nonsense"]}})", R"(,"ops":{"kind":["kernel"],"lane":[0]}})",
        R"(,"edges":{"from":[0],"to":[0]}})", R"(,"lanes":{"rank":[70000]}})", R"(,"lanes":{"rank":[1e400]}})",
        R"(,"about":{"numbers":[1]}})"}) {
    const std::string text = head + rest;
    if (std::string(rest) == R"(,"ops":3})") continue;  // not a table: ignored like any unknown key
    EXPECT_THROW(read_json(text), InputError) << text;
  }
  EXPECT_THROW(read_json("{}"), InputError);
  // Two ops that wait for each other.
  const std::string circle =
      head + R"(,"lanes":{"kind":["stream"]},"ops":{"name":["a","b"],"lane":[0,0]},"edges":{"from":[0,1],"to":[1,0]}})";
  EXPECT_THROW(read_json(circle), InputError);
}

}  // namespace
}  // namespace spillway::traces
