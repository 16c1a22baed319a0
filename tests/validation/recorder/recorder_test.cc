#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "traces/formats/read.h"
#include "validation/recorder/activity_lines.h"
#include "validation/recorder/record.h"

namespace spillway::validation {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::uint64_t start_ns = 1'767'312'000'000'000'000;  // an epoch time in nanoseconds

// A launch, its kernel, a copy to pageable memory that blocks, an event recorded on one stream and waited for by
// another, memory taken and given back, and a range around all of it.
std::string recording() {
  std::string text;
  append_head(text, 42);
  append(text, RecordedCall{"cudaMalloc_v3020", false, start_ns, start_ns + 1000, 42, 7, 1});
  append(text, ActivityMemory{false, start_ns + 900, 0x700000000, 4096, 4096, 42, 0, 1});
  append(text, RecordedCall{"cudaLaunchKernel_v7000", false, start_ns + 2000, start_ns + 4000, 42, 7, 2});
  append(text, RecordedKernel{"void \"odd\"<T>(float*)\x01\xff", start_ns + 6000, start_ns + 16'000, 0, 7, 2, 0});
  append(text, RecordedCall{"cudaEventRecord_v3020", false, start_ns + 5000, start_ns + 5500, 42, 7, 3});
  append(text, RecordedCall{"cudaStreamWaitEvent_v3020", false, start_ns + 5600, start_ns + 5800, 42, 7, 4});
  append(text, RecordedSync{RecordedSyncKind::stream_wait, start_ns + 5600, start_ns + 5800, 13, 4, 3, 7});
  append(text, RecordedCall{"cudaMemcpy_v3020", false, start_ns + 7000, start_ns + 30'000, 42, 7, 5});
  append(text, RecordedCopy{MemorySide::device, MemorySide::pageable, false, start_ns + 20'000, start_ns + 29'000, 4096,
                            0, 13, 5});
  append(text, RecordedCall{"cudaMemsetAsync_v3020", false, start_ns + 31'000, start_ns + 32'000, 42, 7, 6});
  append(text, RecordedSet{start_ns + 33'000, start_ns + 34'000, 512, 0, 13, 6});
  append(text, RecordedCall{"cudaFree_v3020", false, start_ns + 40'000, start_ns + 41'000, 42, 7, 8});
  append(text, ActivityMemory{true, start_ns + 40'500, 0x700000000, 4096, 0, 42, 0, 2});
  append(text, RecordedRange{"step", start_ns, start_ns + 50'000, 42, 7});
  return text;
}

class RecorderFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("recorder_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& text) const {
    const std::string path = folder_ / "recording.json";
    std::ofstream(path) << text;
    return path;
  }
  static OpId named(const Trace& trace, std::string_view name) {
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.strings.text(trace.ops.name[i]).find(name) != std::string_view::npos)
        return OpId(static_cast<std::uint32_t>(i));
    return OpId::none;
  }
  fs::path folder_;
};

TEST_F(RecorderFile, ReadsAsATrace) {
  std::string text = recording();
  append_tail(text, {12'345, 0});
  const std::string path = write(text);
  const Trace trace = read_trace(path, {});
  const OpId kernel = named(trace, "odd"), launch = named(trace, "cudaLaunchKernel");
  ASSERT_NE(kernel, OpId::none);
  EXPECT_EQ(trace.ops.launched_by[index_of(kernel)], launch);
  EXPECT_EQ(trace.ops.duration[index_of(kernel)], microseconds(10));
  EXPECT_EQ(trace.ops.start[index_of(kernel)] - trace.ops.start[index_of(launch)], microseconds(4));
  const OpId copy = named(trace, "Memcpy DtoH");
  EXPECT_EQ(trace.ops.kind[index_of(copy)], OpKind::copy_device_to_host);
  EXPECT_NE(trace.ops.flags[index_of(copy)] & static_cast<std::uint8_t>(OpFlag::pageable), 0);
  EXPECT_EQ(trace.ops.bytes[index_of(copy)], Bytes(4096));
  EXPECT_EQ(trace.ops.kind[index_of(named(trace, "Memset (Device)"))], OpKind::memset);
  const Sync* wait = trace.sync_of(named(trace, "cudaStreamWaitEvent"));
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->event, named(trace, "cudaEventRecord"));
  ASSERT_EQ(trace.memory_events.size(), 2U);
  EXPECT_EQ(trace.memory_events[0].action, MemoryAction::allocate);
  EXPECT_EQ(trace.memory_events[0].address, Addr(0x700000000));
  EXPECT_EQ(trace.memory_events[1].action, MemoryAction::free_requested);
  EXPECT_EQ(trace.memory_events[1].bytes, Bytes(4096));
  ASSERT_EQ(trace.spans.size(), 1U);
  EXPECT_EQ(trace.strings.text(trace.spans.name[0]), "step");
  for (const Finding& finding : trace.findings) EXPECT_FALSE(finding.is_error) << finding.kind;
  const Recording about = inspect_recording(path);
  EXPECT_TRUE(about.whole);
  EXPECT_EQ(about.overhead, nanoseconds(12'345));
  EXPECT_EQ(about.dropped, 0);
}

// A program that dies leaves whole lines without a tail, or part of one: what is there is read.
TEST_F(RecorderFile, SurvivesTheEndOfTheProgram) {
  const std::string text = recording();
  for (const std::size_t cut : {text.size(), text.size() - 20}) {
    const std::string path = write(text.substr(0, cut));
    EXPECT_FALSE(inspect_recording(path).whole);
    const Trace trace = read_trace(path, {});
    EXPECT_NE(named(trace, "odd"), OpId::none);
    EXPECT_EQ(trace.spans.size(), cut == text.size() ? 1U : 0U);
  }
  EXPECT_THROW(inspect_recording((folder_ / "none").string()), InputError);
}

// Without CUDA in the program (a shell here) nothing is recorded, and its exit code comes back.
TEST_F(RecorderFile, ProgramsRunAsTheyWould) {
  const std::string library = write("no library, but a file");
  setenv("SPILLWAY_CUDA_INJECTION", library.c_str(), 1);
  RecordOptions options;
  options.files = (folder_ / "out").string();
  options.command = {"sh", "-c",
                     "echo \"$SPILLWAY_RECORD_FILE $CUDA_INJECTION64_PATH\" > " + options.files + ".9; exit 3"};
  const RecordOutcome outcome = record(options);
  EXPECT_EQ(outcome.exit_code, 3);
  ASSERT_EQ(outcome.recordings.size(), 1U);  // what the shell wrote there
  EXPECT_FALSE(outcome.recordings[0].whole);
  std::ifstream said(outcome.recordings[0].file);
  std::string line;
  std::getline(said, line);
  EXPECT_EQ(line, options.files + " " + fs::absolute(library).string());
  options.command = {"sh", "-c", "kill -9 $$"};
  EXPECT_EQ(record(options).exit_code, 128 + 9);
  options.command = {"no-such-program-anywhere"};
  try {
    record(options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("can't be started"));
  }
  unsetenv("SPILLWAY_CUDA_INJECTION");
}

}  // namespace
}  // namespace spillway::validation
