#include "hwprofiles/calibrate/drive_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "hwprofiles/calibrate/drive_fit.h"
#include "hwprofiles/calibrate/drive_identity.h"
#include "hwprofiles/calibrate/io_pattern.h"
#include "hwprofiles/calibrate/io_ring.h"
#include "hwprofiles/calibrate/scratch_file.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Bytes mib{1 << 20};

// A folder in the build tree, which lies on a drive where the temporary one may not; empty again at the end.
class DriveFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::current_path() / ("drive_test_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(folder_)) << "something was left behind";
    fs::remove_all(folder_);
  }
  std::string file(const std::string& name = "scratch") const { return (folder_ / name).string(); }

  // Whether this place lets us measure at all; else the words of why not.
  std::string obstacle() const {
    if (!IoRing::built_in()) return "built without liburing";
    try {
      const IoRing ring(1);
      const ScratchFile scratch(file("obstacle"), mib, Bytes(0), ScratchFile::Access::direct);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  static std::string cause(const std::function<void()>& action) {
    try {
      action();
    } catch (const InputError& error) {
      return error.cause();
    }
    return "nothing was wrong";
  }
  std::string scratch_cause(const std::string& path, Bytes bytes = mib) const {
    return cause([&] { const ScratchFile scratch(path, bytes, Bytes(0), ScratchFile::Access::direct); });
  }

  fs::path folder_;
};

constexpr auto go_on = [] { return false; };

// Never destroys data: what exists is refused and stays as it was.
TEST_F(DriveFile, RefusesWhatExists) {
  std::ofstream(file()) << "precious";
  EXPECT_THAT(scratch_cause(file()), HasSubstr("exists already"));
  EXPECT_EQ(fs::file_size(file()), 8U);
  fs::remove(file());
  EXPECT_THAT(scratch_cause(folder_.string()), HasSubstr("exists already"));
  fs::create_symlink("nowhere", file());
  EXPECT_THAT(scratch_cause(file()), HasSubstr("exists already"));
  fs::remove(file());
}

TEST_F(DriveFile, SaysWhatIsWrongWithThePlace) {
  EXPECT_THAT(scratch_cause(file("none/scratch")), HasSubstr("folder"));
  EXPECT_THAT(scratch_cause(file(), mib * (std::int64_t{1} << 40)), HasSubstr("asked"));
  if (geteuid() != 0) {
    EXPECT_THAT(scratch_cause("/scratch-of-a-test"), HasSubstr("can't be made"));
  }
}

// No drive lies below a memory file system, even where the kernel allows O_DIRECT on it; nothing is left there.
TEST_F(DriveFile, LeavesNothingInATmpfs) {
  std::ifstream mounts("/proc/mounts");
  std::string line, said;
  while (std::getline(mounts, line)) said += line.find(" /dev/shm tmpfs ") != std::string::npos ? "tmpfs" : "";
  if (said.empty()) GTEST_SKIP() << "no tmpfs at /dev/shm";
  const std::string path = "/dev/shm/spillway_test_" + std::to_string(getpid());
  EXPECT_THAT(scratch_cause(path), HasSubstr("O_DIRECT"));
  EXPECT_FALSE(fs::exists(path));
}

// A reservation that fails half way (here by a limit, as by a quota or a full disk) is told and leaves nothing.
TEST_F(DriveFile, FailedReservationLeavesNothing) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = before;
  low.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &low);
  EXPECT_THAT(scratch_cause(file(), mib * 8), HasSubstr("can't be reserved"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

// The name is gone while the file is still in use: a killed run leaves nothing.
TEST_F(DriveFile, HasNoNameWhileInUse) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const ScratchFile scratch(file(), mib, Bytes(0), ScratchFile::Access::direct);
  EXPECT_FALSE(fs::exists(file()));
}

// What was written at an offset comes back from it, with and without registered memory.
TEST_F(DriveFile, RingReadsBackWhatItWrote) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const ScratchFile scratch(file(), mib, Bytes(0), ScratchFile::Access::direct);
  for (const bool registered : {false, true}) {
    IoRing ring(4);
    AlignedBuffer buffer(16384);
    if (registered && !ring.register_buffer({buffer.data(), buffer.size()})) GTEST_SKIP() << "locked memory is limited";
    std::memset(buffer.data(), registered ? 7 : 5, 8192);
    ring.submit(IoRing::Direction::write, scratch.descriptor(), {buffer.data(), 8192}, Bytes(40960), 1);
    IoRing::Completion done = ring.wait();
    EXPECT_EQ(done.tag, 1U);
    EXPECT_EQ(done.result, 8192);
    ring.submit(IoRing::Direction::read, scratch.descriptor(), {buffer.data() + 8192, 8192}, Bytes(40960), 2);
    done = ring.wait();
    EXPECT_EQ(done.result, 8192);
    EXPECT_EQ(std::memcmp(buffer.data(), buffer.data() + 8192, 8192), 0);
    EXPECT_EQ(ring.in_flight(), 0U);
  }
}

// Bytes are counted: the run asks for no more than most_bytes and completes what it asked for.
TEST_F(DriveFile, PatternMovesWhatItWasTold) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const ScratchFile scratch(file(), mib * 4, Bytes(0), ScratchFile::Access::direct);
  IoRing ring(16);
  AlignedBuffer buffer(8 * 65536);
  IoPattern pattern;
  pattern.block = Bytes(65536);
  pattern.write_depth = 8;
  pattern.end = scratch.bytes();
  pattern.most_bytes = mib * 6;  // more than the file: starts over
  pattern.most_seconds = 60;
  const IoRun wrote = run_pattern(ring, scratch, pattern, buffer.span(), 1, go_on);
  EXPECT_EQ(wrote.written, mib * 6);
  EXPECT_EQ(wrote.done.size(), 96U);
  pattern.read_depth = 4;
  pattern.write_depth = 4;
  pattern.most_bytes = mib * 2;
  const IoRun both = run_pattern(ring, scratch, pattern, buffer.span(), 1, go_on);
  EXPECT_EQ(both.read + both.written, mib * 2);
  EXPECT_GT(both.read, Bytes(0));
  EXPECT_GT(both.written, Bytes(0));
  EXPECT_THROW(run_pattern(ring, scratch, pattern, buffer.span(), 1, [] { return true; }), Cancelled);
  EXPECT_EQ(ring.in_flight(), 0U);
}

// 8 requests of 10 B, the k-th done at k^2: 4 stretches of 2 give 20/4, 20/12, 20/20, 20/28 B/s.
TEST(SlicedRates, AreBytesOverTime) {
  IoRun run;
  for (int k = 1; k <= 8; ++k) run.done.push_back({static_cast<double>(k * k), 1, IoRing::Direction::read});
  EXPECT_THAT(sliced_rates(run, Bytes(10), IoRing::Direction::read, 4, 2),
              testing::ElementsAre(5, 20.0 / 12, 1, 20.0 / 28));
  EXPECT_THAT(sliced_rates(run, Bytes(10), IoRing::Direction::write, 4, 2), testing::IsEmpty());
}

// The whole campaign on this machine's drive, within its budget; the fit accepts what came out.
TEST_F(DriveFile, CampaignKeepsItsBudget) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  DriveCalibrationOptions options;
  options.file = file();
  options.bytes = mib * 64;
  options.quick = true;
  std::size_t parts = 0;
  const DriveMeasurement measured = measure_drive(options, [&](std::size_t done, std::size_t total) {
    EXPECT_LE(done, total);
    parts = std::max(parts, done);
    return true;
  });
  EXPECT_GE(parts, 21U);
  // Each run that writes may overshoot by one window; 1 MiB blocks at depth 32 twice.
  EXPECT_LE(measured.written, options.bytes + mib * 128);
  EXPECT_EQ(measured.sequential.size(), 18U);
  const DriveFit fit = fit_drive(measured, drive_identity(folder_.string()), "", "2026-01-02");
  EXPECT_GT(fit.profile.read_bandwidth->value, Rate(0));
  EXPECT_GT(fit.profile.write_bandwidth->value, Rate(0));
}

TEST_F(DriveFile, CampaignCanBeInterrupted) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  DriveCalibrationOptions options;
  options.file = file();
  options.bytes = mib * 64;
  options.quick = true;
  EXPECT_THROW(measure_drive(options, [](std::size_t done, std::size_t) { return done < 3; }), Cancelled);
  options.bytes = mib;
  EXPECT_THAT(cause([&] { measure_drive(options, [](std::size_t, std::size_t) { return true; }); }),
              HasSubstr("too few"));
}

// A copy of what sysfs says of a partition of a drive behind a link of 16 GT/s x4.
TEST(DriveIdentity, ReadsModelSizeAndLink) {
  const fs::path root = fs::path(testing::TempDir()) / "drive_identity";
  const fs::path drive = root / "devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1";
  fs::create_directories(drive / "nvme0n1p2");
  fs::create_directories(drive / "device");
  fs::create_directories(root / "dev/block");
  const auto put = [](const fs::path& path, const std::string& text) { std::ofstream(path) << text << "\n"; };
  put(drive / "nvme0n1p2/partition", "2");
  put(drive / "size", "2000409264");
  put(drive / "device/model", "Maker Model 1T            ");
  put(root / "devices/pci0000:00/0000:01:00.0/current_link_speed", "16.0 GT/s PCIe");
  put(root / "devices/pci0000:00/0000:01:00.0/current_link_width", "4");
  fs::create_directory_symlink("../../devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2",
                               root / "dev/block/259:2");
  const DriveIdentity identity = drive_identity(259, 2, root.string());
  EXPECT_EQ(identity.device, "nvme0n1");
  EXPECT_EQ(identity.model, "Maker Model 1T");
  EXPECT_EQ(identity.capacity, Bytes(2000409264LL * 512));
  EXPECT_EQ(identity.pcie_generation, 4);
  EXPECT_EQ(identity.pcie_lanes, 4);
  EXPECT_EQ(drive_identity(1, 1, root.string()).model, "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace spillway::hwprofiles
