#include "hwprofiles/calibrate/gds_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/input_error.h"
#include "hwprofiles/calibrate/drive_calibration.h"
#include "hwprofiles/calibrate/io_pattern.h"
#include "hwprofiles/calibrate/io_ring.h"
#include "hwprofiles/calibrate/scratch_file.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Bytes one_mib{1 << 20};
constexpr auto never_stop = [] { return false; };

class GdsFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::current_path() / ("gds_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    setenv("SPILLWAY_CUFILE", SPILLWAY_FAKE_CUFILE, 1);
    setenv("SPILLWAY_NVIDIA_FS", (folder_ / "nvidia-fs").c_str(), 1);  // not there
    setenv("CUFILE_ENV_PATH_JSON", (folder_ / "cufile.json").c_str(), 1);
  }
  void load_nvidia_fs(const char* stats) const {
    fs::create_directories(folder_ / "nvidia-fs");
    std::ofstream(folder_ / "nvidia-fs/stats") << "IO stats: " << stats << ", peer IO stats: Disabled\n"
                                               << "Reads : n=0 ok=0 err=0\nWrites : n=0 ok=0 err=0\n";
  }
  // After a write of a page through the stand-in.
  CufileWay way() const {
    const ScratchFile scratch(file(), one_mib, Bytes(0), ScratchFile::Access::buffered);
    GdsQueue queue(scratch.descriptor(), 1, {});
    std::vector<std::byte> memory(4096);
    queue.submit(IoQueue::Direction::write, scratch.descriptor(), memory, Bytes(0), 1);
    EXPECT_EQ(queue.wait().result, 4096);
    const CufileVerdict verdict = queue.way();
    EXPECT_NE(verdict.why, "");
    return verdict.way;
  }
  void TearDown() override {
    unsetenv("SPILLWAY_CUFILE");
    for (const char* name : {"FAKE_CUFILE", "SPILLWAY_NVIDIA_FS", "CUFILE_ALLOW_COMPAT_MODE",
                             "CUFILE_FORCE_COMPAT_MODE", "CUFILE_ENV_PATH_JSON"})
      unsetenv(name);
    fs::remove_all(folder_ / "nvidia-fs");
    fs::remove(folder_ / "cufile.json");
    EXPECT_TRUE(fs::is_empty(folder_)) << "something was left behind";
    fs::remove_all(folder_);
  }
  std::string file() const { return (folder_ / "scratch").string(); }
  std::string refusal() const {
    const ScratchFile scratch(file(), one_mib, Bytes(0), ScratchFile::Access::buffered);
    try {
      const GdsQueue queue(scratch.descriptor(), 1, {});
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "cuFile");
      return error.cause();
    }
    return "nothing was wrong";
  }

  fs::path folder_;
};

// What eight requests of odd sizes wrote comes back, whatever the order in which two workers complete them.
TEST_F(GdsFile, ReadsBackWhatItWrote) {
  const ScratchFile scratch(file(), one_mib, Bytes(0), ScratchFile::Access::buffered);
  GdsQueue queue(scratch.descriptor(), 2, {});
  std::vector<std::vector<std::byte>> sent, got;
  for (std::size_t i = 0; i < 8; ++i) {
    sent.emplace_back(1000 + i, std::byte(i + 1));
    got.emplace_back(1000 + i);
  }
  for (const auto direction : {IoQueue::Direction::write, IoQueue::Direction::read}) {
    for (std::size_t i = 0; i < 8; ++i)
      queue.submit(direction, scratch.descriptor(), direction == IoQueue::Direction::write ? sent[i] : got[i],
                   Bytes(static_cast<std::int64_t>(i) * 4096), i);
    std::vector<bool> done(8);
    while (queue.in_flight() > 0) {
      const IoQueue::Completion completion = queue.wait();
      EXPECT_EQ(completion.result, 1000 + static_cast<std::int64_t>(completion.tag));
      done[completion.tag] = true;
    }
    EXPECT_EQ(done, std::vector<bool>(8, true));
  }
  EXPECT_EQ(got, sent);
  EXPECT_FALSE(queue.poll().has_value());
}

TEST_F(GdsFile, SaysWhyItIsNotThere) {
  setenv("FAKE_CUFILE", "no driver", 1);
  EXPECT_THAT(refusal(), HasSubstr("driver does not start"));
  setenv("FAKE_CUFILE", "no file system", 1);
  EXPECT_THAT(refusal(), HasSubstr("file system"));
  setenv("SPILLWAY_CUFILE", "/none/libcufile.so.0", 1);
  EXPECT_THAT(refusal(), HasSubstr("GPUDirect Storage is not here"));
}

// cuFile falls back to host memory without a word; what it did is told by nvidia-fs, its properties and its settings.
TEST_F(GdsFile, TellsItsCompatibilityModeApart) {
  EXPECT_EQ(way(), CufileWay::compatibility);  // no nvidia-fs
  setenv("FAKE_CUFILE", "peer to peer", 1);
  EXPECT_EQ(way(), CufileWay::unknown);  // it may, or may not
  unsetenv("FAKE_CUFILE");

  load_nvidia_fs("Enabled");
  EXPECT_EQ(way(), CufileWay::direct);  // it was counted
  setenv("FAKE_CUFILE", "compatibility", 1);
  EXPECT_EQ(way(), CufileWay::compatibility);  // a file system that nvidia-fs does not know, say
  unsetenv("FAKE_CUFILE");
  load_nvidia_fs("Disabled");
  EXPECT_EQ(way(), CufileWay::unknown);  // nothing is counted

  // Settings: the file's, with comments as NVIDIA's has, and the environment's before it.
  std::ofstream(folder_ / "cufile.json")
      << "{\n  // \"allow_compat_mode\": true,\n"
         "  \"properties\": {\"allow_compat_mode\" : false, \"use_poll_mode\": true}\n}";
  EXPECT_EQ(way(), CufileWay::direct);
  setenv("CUFILE_ALLOW_COMPAT_MODE", "true", 1);
  EXPECT_EQ(way(), CufileWay::unknown);
  setenv("CUFILE_FORCE_COMPAT_MODE", "true", 1);
  EXPECT_EQ(way(), CufileWay::compatibility);
  unsetenv("CUFILE_ALLOW_COMPAT_MODE");
  std::ofstream(folder_ / "cufile.json") << "not JSON";
  setenv("CUFILE_FORCE_COMPAT_MODE", "0", 1);
  EXPECT_EQ(way(), CufileWay::unknown);
}

// nvidia-fs's own text (its version 2), which counts only where it is told to.
TEST(NvidiaFsStats, AreRead) {
  const std::string text =
      "GDS Version: 1.13.0.11\nNVFS statistics(ver: 4.0)\nNVFS Driver(version: 2.24.2)\n"
      "Mellanox PeerDirect Supported: False\nIO stats: Enabled, peer IO stats: Disabled\nLogging level: info\n\n"
      "Active Shadow-Buffer (MiB): 0\nActive Process: 0\n"
      "Reads\t\t\t\t: n=20 ok=18 err=2 readMiB=80 io_state_err=0\n"
      "Reads\t\t\t\t: Bandwidth(MiB/s)=12 Avg-Latency(usec)=9\n"
      "Sparse Reads\t\t\t: n=0 io=0 holes=0 pages=0\n"
      "Writes\t\t\t\t: n=7 ok=7 err=0 writeMiB=28 io_state_err=0 pg-cache=0\n"
      "Mmap\t\t\t\t: n=4 ok=4 err=0 munmap=4\n";
  EXPECT_EQ(nvidia_fs_requests(text), 25U);
  std::string off = text;
  off.replace(off.find("Enabled"), 7, "Disabled");
  EXPECT_EQ(nvidia_fs_requests(off), std::nullopt);
  EXPECT_EQ(nvidia_fs_requests(""), std::nullopt);
}

// A device that is gone when a worker begins fails what that is given, and nothing else.
TEST_F(GdsFile, LostDevicesFailRequests) {
  const ScratchFile scratch(file(), one_mib, Bytes(0), ScratchFile::Access::buffered);
  GdsQueue queue(scratch.descriptor(), 1, [] { throw InputError("GPU", "", "lost", ""); });
  std::vector<std::byte> memory(4096);
  queue.submit(IoQueue::Direction::write, scratch.descriptor(), memory, Bytes(0), 7);
  EXPECT_EQ(queue.wait().result, -ENODEV);
}

// Pulled out half way, through cuFile.
TEST_F(GdsFile, UnpluggedIsToldInWords) {
  setenv("FAKE_CUFILE", "unplugged", 1);
  const ScratchFile scratch(file(), one_mib, Bytes(0), ScratchFile::Access::buffered);
  GdsQueue queue(scratch.descriptor(), 4, {});
  std::vector<std::byte> memory(65536);
  IoPattern pattern;
  pattern.block = Bytes(16384);
  pattern.write_depth = 4;
  pattern.end = pattern.most_bytes = one_mib;
  pattern.most_seconds = 10;
  try {
    run_pattern(queue, scratch, pattern, memory, 1, never_stop);
    FAIL() << "it went on";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::strerror(EIO)));
  }
  EXPECT_EQ(queue.in_flight(), 0U);
}

// Completes so many requests, then fails all with one error.
class FailingQueue final : public IoQueue {
 public:
  FailingQueue(std::size_t good, int error) : good_(good), error_(error) {}
  void submit(Direction, int, std::span<std::byte> memory, Bytes, std::uint64_t tag) override {
    const bool is_good = asked_++ < good_;
    done_.push_back({tag, is_good ? static_cast<std::int64_t>(memory.size()) : -error_});
  }
  Completion wait() override {
    const Completion first = done_.front();
    done_.erase(done_.begin());
    return first;
  }
  std::optional<Completion> poll() override { return done_.empty() ? std::nullopt : std::optional(wait()); }
  unsigned in_flight() const override { return static_cast<unsigned>(done_.size()); }

 private:
  std::size_t good_, asked_ = 0;
  std::int64_t error_;
  std::vector<Completion> done_;
};

// A drive that is pulled out, and one that fills up: the system's word, the file gone, nothing in flight.
TEST_F(GdsFile, FailingDrivesAreToldInWords) {
  for (const int error : {EIO, ENOSPC, ENODEV}) {
    const ScratchFile scratch(file(), one_mib, Bytes(0), ScratchFile::Access::buffered);
    FailingQueue queue(5, error);
    std::vector<std::byte> memory(65536);
    IoPattern pattern;
    pattern.block = Bytes(16384);
    pattern.read_depth = 2;
    pattern.write_depth = 2;
    pattern.end = pattern.most_bytes = one_mib;
    pattern.most_seconds = 10;
    try {
      run_pattern(queue, scratch, pattern, memory, 1, never_stop);
      FAIL() << "it went on";
    } catch (const InputError& failure) {
      EXPECT_THAT(failure.what(), HasSubstr(std::strerror(error)));
      EXPECT_THAT(failure.what(), HasSubstr("the file is removed"));
    }
    EXPECT_EQ(queue.in_flight(), 0U);
  }
}

// Device memory of 64 MiB: 4 MiB blocks, three depths, both directions; without the library the reason.
TEST_F(GdsFile, CampaignMeasuresItWhereItIs) {
  DriveCalibrationOptions options;
  options.file = file();
  options.bytes = one_mib * 64;
  options.quick = true;
  std::vector<std::byte> device(static_cast<std::size_t>((one_mib * 64).count()));
  options.device_memory = device;
  const auto progress = [](std::size_t, std::size_t) { return true; };
  try {
    const DriveMeasurement measured = measure_drive(options, progress);
    EXPECT_EQ(measured.gpudirect.size(), 6U);
    EXPECT_EQ(measured.no_gpudirect, "");
    EXPECT_EQ(measured.gpudirect_way.way, CufileWay::compatibility);
    for (const DrivePoint& point : measured.gpudirect) EXPECT_GT(point.bytes_per_second.median, 0);
    setenv("FAKE_CUFILE", "no driver", 1);
    const DriveMeasurement without = measure_drive(options, progress);
    EXPECT_TRUE(without.gpudirect.empty());
    EXPECT_THAT(without.no_gpudirect, HasSubstr("driver"));
  } catch (const InputError& error) {
    if (error.file() == "io_uring" || error.cause().find("O_DIRECT") != std::string::npos) GTEST_SKIP() << error.what();
    throw;
  }
}

}  // namespace
}  // namespace spillway::hwprofiles
