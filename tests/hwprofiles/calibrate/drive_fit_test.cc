#include "hwprofiles/calibrate/drive_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"

namespace spillway::hwprofiles {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Seconds of slices at `rates`, each multiplied by a small deterministic ripple.
std::vector<double> slices(Bytes slice, const std::vector<std::pair<double, int>>& rates, double ripple) {
  std::vector<double> seconds;
  for (const auto& [rate, count] : rates)
    for (int i = 0; i < count; ++i)
      seconds.push_back(static_cast<double>(slice.count()) / rate / (1 + ripple * std::sin(2.4 * i)));
  return seconds;
}

Spread exactly(double value) { return {value, 0}; }

// Rate of a drive of peak `peak` and latency `latency`: the smaller of both limits.
DriveMeasurement drive(double read_peak, double write_peak, double latency) {
  DriveMeasurement measured;
  for (const bool is_write : {false, true})
    for (const unsigned depth : {1U, 8U, 32U})
      for (const std::int64_t block : {4096, 1 << 20}) {
        const double window = depth * static_cast<double>(block) / latency;
        const double rate = std::min(is_write ? write_peak : read_peak, window);
        measured.sequential.push_back({Bytes(block), depth, is_write, exactly(rate), exactly(latency)});
      }
  measured.random_read_iops = exactly(400'000);
  measured.random_write_iops = exactly(300'000);
  measured.mixed = {exactly(0.75 * read_peak), exactly(0.5 * write_peak)};
  measured.sustained_slice = Bytes(1 << 28);
  measured.sustained_seconds = slices(measured.sustained_slice, {{write_peak, 60}, {write_peak / 4, 40}}, 0.03);
  return measured;
}

// A steady drive has one level, at its mean rate, however its slices ripple by 5 %.
TEST(WriteLevels, OneWhereNothingFalls) {
  const auto levels = write_levels(slices(Bytes(1 << 20), {{2e9, 100}}, 0.05), Bytes(1 << 20));
  ASSERT_EQ(levels.size(), 1U);
  EXPECT_NEAR(levels[0].bytes_per_second, 2e9, 0.01 * 2e9);
  EXPECT_EQ(levels[0].bytes, Bytes(100 << 20));
}

// Fast 60 slices, steady 40 at a quarter: cut exactly there, rates kept.
TEST(WriteLevels, CutWhereTheRateFalls) {
  const auto levels = write_levels(slices(Bytes(1 << 20), {{4e9, 60}, {1e9, 40}}, 0.03), Bytes(1 << 20));
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].bytes, Bytes(60 << 20));
  EXPECT_NEAR(levels[0].bytes_per_second, 4e9, 0.02 * 4e9);
  EXPECT_NEAR(levels[1].bytes_per_second, 1e9, 0.02 * 1e9);
}

TEST(WriteLevels, ThreeWithAFoldingStage) {
  const auto levels = write_levels(slices(Bytes(1 << 20), {{4e9, 50}, {2e9, 30}, {5e8, 20}}, 0.03), Bytes(1 << 20));
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[1].bytes, Bytes(30 << 20));
  EXPECT_NEAR(levels[1].bytes_per_second, 2e9, 0.02 * 2e9);
}

// A rate that rises is no cache that fills.
TEST(WriteLevels, RisingIsNoLevelOfItsOwn) {
  EXPECT_EQ(write_levels(slices(Bytes(1 << 20), {{1e9, 50}, {3e9, 50}}, 0.03), Bytes(1 << 20)).size(), 1U);
}

// Stalls, one slice in twenty, make the first part slower in all than the second, though most of its slices are faster.
TEST(WriteLevels, StallsAreNoCache) {
  std::vector<double> seconds;
  for (int i = 0; i < 100; ++i) seconds.push_back(i >= 60 ? 1 / 2.5 : i % 20 == 10 ? 10 : 1 / 4.0);
  EXPECT_EQ(write_levels(seconds, Bytes(1 << 20)).size(), 1U);
}

// r/R + w/W = 0.75 + 0.5 = 1.25, so interference 0.75; 1 MiB in 100 us fills the peaks from depth 1 on.
TEST(DriveFit, FindsTheModelBehindTheFigures) {
  const DriveFit fit = fit_drive(drive(7e9, 4e9, 100e-6), {"nvme0n1", "Maker Model 1T", Bytes(1'000'204'886'016), 4, 4},
                                 "", "2026-01-02");
  const NvmeProfile& profile = fit.profile;
  EXPECT_EQ(profile.name, "maker-model-1t-measured");
  EXPECT_EQ(profile.vendor, "Maker");
  EXPECT_NEAR(to_bytes_per_second(profile.read_bandwidth->value), 7e9, 1e6);
  EXPECT_NEAR(to_bytes_per_second(profile.write_bandwidth->value), 4e9, 0.02 * 4e9);
  EXPECT_NEAR(to_bytes_per_second(profile.steady_write_bandwidth->value), 1e9, 0.02 * 1e9);
  EXPECT_EQ(profile.write_cache->value, Bytes(60LL << 28));
  EXPECT_FALSE(profile.folding_bytes.has_value());
  EXPECT_NEAR(profile.read_write_interference->value, 0.75, 0.02);
  EXPECT_EQ(profile.read_latency->value, microseconds(100));
  EXPECT_EQ(profile.queue_depth->value, 1);
  EXPECT_EQ(profile.pcie_generation.origin.provenance, OriginKind::measured);
  // 4 KiB at depth 8: 8 x 4096 B / 100 us = 327.68 MB/s of 7 GB/s.
  EXPECT_NEAR(profile.read_efficiency->value.at(8, 4096).value, 327.68e6 / 7e9, 1e-6);
  EXPECT_EQ(profile.read_bandwidth->origin.date, "2026-01-02");
}

TEST(DriveFit, ClaimsNoCacheThatItDidNotSee) {
  DriveMeasurement measured = drive(7e9, 4e9, 100e-6);
  measured.sustained_seconds = slices(measured.sustained_slice, {{4e9, 100}}, 0.03);
  const DriveFit fit = fit_drive(measured, {}, "mine", "2026-01-02");
  EXPECT_FALSE(fit.profile.write_cache.has_value());
  EXPECT_FALSE(fit.profile.steady_write_bandwidth.has_value());
  EXPECT_THAT(fit.notes, Contains(HasSubstr("no cache is claimed")));
  // The system shows no link: 7 GB/s fit through four lanes of generation 4 (7.88 GB/s), not of 3 (3.94).
  EXPECT_EQ(fit.profile.pcie_generation.value, 4);
  EXPECT_EQ(fit.profile.pcie_generation.origin.provenance, OriginKind::assumed);
}

// 600 of 1000 MB/s each: shares of 1.2 beside 0.6 of one budget for a drive worse than one budget is told, not hidden.
TEST(DriveFit, TellsOfMoreInterferenceThanTheModelKnows) {
  DriveMeasurement measured = drive(1e9, 1e9, 1e-4);
  measured.mixed = {exactly(0.3e9), exactly(0.3e9)};
  const DriveFit fit = fit_drive(measured, {}, "mine", "");
  EXPECT_EQ(fit.profile.read_write_interference->value, 1);
  EXPECT_THAT(fit.notes, Contains(HasSubstr("60 %")));
}

// What is written is read back as the same profile, spread and date included.
TEST(ProfileWriter, ReadsBackTheSame) {
  const DriveFit fit = fit_drive(drive(7e9, 4e9, 100e-6), {"nvme0n1", "Maker Model 1T", Bytes(1'000'204'886'016), 4, 4},
                                 "mine", "2026-01-02");
  const std::string path = testing::TempDir() + "/written_drive.json";
  std::ofstream(path) << profile_text(fit.profile, measured_origin("2026-01-02"));
  const ProfileLibrary library({});
  EXPECT_THAT(library.check(path), testing::IsEmpty());
  const NvmeProfile read = library.load_nvme(path);
  EXPECT_EQ(read.capacity->value, Bytes(1'000'204'886'016));
  EXPECT_NEAR(to_bytes_per_second(read.write_bandwidth->value), to_bytes_per_second(fit.profile.write_bandwidth->value),
              1e3);
  EXPECT_NEAR(read.write_bandwidth->origin.spread, fit.profile.write_bandwidth->origin.spread, 1e-4);
  EXPECT_GT(read.write_bandwidth->origin.spread, 0.01);
  EXPECT_EQ(read.write_bandwidth->origin.date, "2026-01-02");
  EXPECT_EQ(read.write_bandwidth->origin.provenance, OriginKind::measured);
  EXPECT_EQ(read.read_efficiency->value.members().size(), 3U);
  EXPECT_NEAR(read.read_efficiency->value.at(8, 4096).value, fit.profile.read_efficiency->value.at(8, 4096).value,
              1e-8);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace spillway::hwprofiles
