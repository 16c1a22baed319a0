#include "sim/devices/endurance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"

namespace spillway::sim {
namespace {

constexpr double tera = 1e12;

NvmeProfile bundled(const char* name) { return ProfileLibrary::standard().load_nvme(name); }

// W e^W = x, and W0's known points.
TEST(Endurance, LambertW0InvertsItsDefinition) {
  for (const double x : {-0.36787, -0.36, -0.3, -0.1, -1e-6, 0.0, 0.1, 1.0, 2.0, 100.0}) {
    const double w = lambert_w0(x);
    EXPECT_NEAR(w * std::exp(w), x, 1e-12 * std::max(1.0, std::abs(x))) << x;
    EXPECT_GE(w, -1) << x;
  }
  EXPECT_NEAR(lambert_w0(std::exp(1.0)), 1, 1e-14);
  EXPECT_NEAR(lambert_w0(1), 0.5671432904097838, 1e-14);
  EXPECT_EQ(lambert_w0(-std::exp(-1.0)), -1);
}

// Xiang and Kurkoski's own example: 30 % spare gives 2.36; measured 2.35. Less spare, more writes.
TEST(Endurance, WriteAmplificationByOverProvisioning) {
  EXPECT_NEAR(random_write_amplification(0.30), 2.36, 0.005);
  EXPECT_NEAR(random_write_amplification(0.30), 2.35, 0.02);
  double before = std::numeric_limits<double>::infinity();
  for (const double spare : {1e-4, 0.01, 0.07, 0.28, 1.0, 10.0}) {
    const double now = random_write_amplification(spare);
    EXPECT_LT(now, before) << spare;
    EXPECT_GT(now, 1) << spare;
    before = now;
  }
}

struct Ratio {
  const char* drive;
  double sequential_tb, rated_tb;  // the vendor's
};
class VendorRatio : public testing::TestWithParam<Ratio> {};

// Sequential over random endurance of drives whose vendor rates both, from the labelled capacity alone.
TEST_P(VendorRatio, IsModelledWithin15Percent) {
  NvmeProfile drive = bundled(GetParam().drive);
  const Endurance published = drive_endurance(drive);
  EXPECT_TRUE(published.published);
  EXPECT_NEAR(published.bytes / tera, GetParam().sequential_tb, 1);
  drive.sequential_endurance.reset();
  const Endurance modelled = drive_endurance(drive);
  EXPECT_FALSE(modelled.published);
  const double ratio = modelled.bytes / (GetParam().rated_tb * tera);
  EXPECT_NEAR(ratio / (GetParam().sequential_tb / GetParam().rated_tb), 1, 0.15);
  EXPECT_NEAR(modelled.low / tera, GetParam().rated_tb, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Endurance, VendorRatio,
    testing::Values(Ratio{"micron-9550-max-3.2tb", 37200, 17520}, Ratio{"micron-9550-max-6.4tb", 74200, 35040},
                    Ratio{"micron-9550-max-12.8tb", 143100, 70080}, Ratio{"micron-9550-max-25.6tb", 282600, 140160},
                    Ratio{"micron-9550-pro-3.84tb", 29400, 7008}, Ratio{"micron-9550-pro-30.72tb", 201200, 56064}));

// 3.2 TB before 4 TiB leaves 37.4 %; 3.84 TB 14.5 %; a profile's own figure comes first.
TEST(Endurance, OverProvisioningFromTheLabel) {
  EXPECT_NEAR(over_provisioning(bundled("micron-9550-max-3.2tb")).spare, 0.374, 5e-4);
  EXPECT_NEAR(over_provisioning(bundled("micron-9550-pro-3.84tb")).spare, 0.145, 5e-4);
  NvmeProfile drive;
  EXPECT_FALSE(over_provisioning(drive).known);
  drive.capacity = {Bytes(std::int64_t{1} << 40), {}};
  EXPECT_FALSE(over_provisioning(drive).known) << "all of the flash is labelled: none is spare";
  drive.over_provisioning = {0.28, {}};
  EXPECT_NEAR(over_provisioning(drive).spare, 0.28, 0);
}

// No garbage collection behind 3D XPoint: sequential writes wear it as its rating says.
TEST(Endurance, XPointIsCreditedNothing) {
  const Endurance found = drive_endurance(bundled("intel-optane-dc-p5800x-1.6tb"));
  EXPECT_NEAR(found.bytes / tera, 292000, 1);
  EXPECT_EQ(found.bytes, found.low);
  EXPECT_EQ(found.bytes, found.high);
}

// Retention and garbage collection are flash's: neither a credit for short retention nor a workload's own amplification
// moves the 73 PB a P5800X of 0.4 TB is rated for, and nothing is said of them; what is used up is gone all the same.
TEST(Endurance, FlashFactorsDontApplyToXPoint) {
  const NvmeProfile drive = bundled("intel-optane-dc-p5800x-0.4tb");
  const Endurance plain = drive_endurance(drive);
  EXPECT_FALSE(plain.is_flash);
  EXPECT_FALSE(plain.collects_garbage);
  const Endurance asked = drive_endurance(drive, {.write_amplification = 3, .retention = RetentionRelaxation::one_day});
  EXPECT_EQ(asked.bytes, plain.bytes);
  EXPECT_NEAR(asked.bytes / tera, 73000, 1);
  EXPECT_EQ(asked.assumptions.size(), plain.assumptions.size());
  const Endurance used = drive_endurance(drive, {.used_fraction = 0.5, .retention = RetentionRelaxation::one_day});
  EXPECT_NEAR(used.bytes / tera, 36500, 1);
  EXPECT_TRUE(drive_endurance(bundled("micron-9550-max-6.4tb")).is_flash);
}

// 6600 ION: 0.075 drive writes a day at 4 KiB and, with units of 16 KiB, 4 x that at 16 KiB (its vendor says 0.3).
TEST(Endurance, SmallWritesToLargeUnitsCostTheWholeUnit) {
  const NvmeProfile drive = bundled("micron-6600-ion-245tb");
  const auto random = [&drive](std::int64_t size) {
    return drive_endurance(drive, {.pattern = WritePattern::random, .write_size = Bytes(size)}).bytes / tera;
  };
  EXPECT_NEAR(random(4096), 33534, 1);
  EXPECT_NEAR(random(8192), 2 * 33534, 2);
  EXPECT_NEAR(random(16384), 4 * 33534, 4);
  EXPECT_NEAR(random(1 << 20), 4 * 33534, 4);
  EXPECT_NEAR(drive_endurance(drive).bytes / tera, 447125, 1);
  // P5336: rated at its own unit; smaller writes take from that.
  const NvmeProfile other = bundled("solidigm-d5-p5336-122.88tb");
  EXPECT_NEAR(drive_endurance(other, {.pattern = WritePattern::random, .write_size = Bytes(32768)}).bytes / tera,
              134300, 1);
  EXPECT_NEAR(drive_endurance(other, {.pattern = WritePattern::random, .write_size = Bytes(4096)}).bytes / tera,
              134300.0 / 8, 1);
}

// Off by default; x86 and x6.67 when asked for, and then the first thing said.
TEST(Endurance, RetentionIsRelaxedOnlyOnRequest) {
  const NvmeProfile drive = bundled("samsung-980-pro-1tb");
  const Endurance plain = drive_endurance(drive);
  for (const std::string& line : plain.assumptions) EXPECT_EQ(line.find("retention"), std::string::npos) << line;
  const Endurance day = drive_endurance(drive, {.retention = RetentionRelaxation::one_day});
  const Endurance weeks = drive_endurance(drive, {.retention = RetentionRelaxation::three_weeks});
  EXPECT_NEAR(day.bytes / plain.bytes, 86, 1e-9);
  EXPECT_NEAR(weeks.bytes / plain.bytes, 6.67, 1e-9);
  EXPECT_NE(day.assumptions.front().find("retention relaxed from 3 years to 1 day"), std::string::npos);
  EXPECT_EQ(day.low, plain.low) << "the low end never rests on it";
}

// A drive 40 % through its rated life has 60 % of the rating left, or 85.6 of 86 relaxed ones.
TEST(Endurance, WhatIsUsedUpIsGone) {
  const NvmeProfile drive = bundled("micron-9550-max-12.8tb");
  EXPECT_NEAR(drive_endurance(drive, {.used_fraction = 0.4}).bytes / tera, 0.6 * 143100, 1);
  EXPECT_NEAR(drive_endurance(drive, {.used_fraction = 0.4, .retention = RetentionRelaxation::one_day}).bytes / tera,
              85.6 * 143100, 10);
  EXPECT_EQ(drive_endurance(drive, {.used_fraction = 1}).bytes, 0);
  EXPECT_NEAR(drive_endurance(drive, {.write_amplification = 2}).bytes / tera, 143100.0 / 2, 1);
  EXPECT_THROW(static_cast<void>(drive_endurance(drive, {.used_fraction = 1.5})), InputError);
  EXPECT_THROW(static_cast<void>(drive_endurance(drive, {.write_amplification = 0.5})), InputError);
}

// Zero is an answer; nothing said is none.
TEST(Endurance, ZeroAndUnknownDiffer) {
  NvmeProfile drive;
  EXPECT_FALSE(drive_endurance(drive).known);
  drive.rated_endurance = {Bytes(0), {}};
  EXPECT_TRUE(drive_endurance(drive).known);
  EXPECT_EQ(drive_endurance(drive).bytes, 0);
  drive.rated_endurance.reset();
  drive.capacity = {Bytes(1'000'000'000'000), {}};
  drive.drive_writes_per_day = {1, {}};
  drive.warranty_years = {5, {}};
  EXPECT_NEAR(drive_endurance(drive).low / tera, 1825, 1e-6);
}

// 365 TB at 1 TB a day last a year.
TEST(Endurance, YearsAtAMeanRate) {
  EXPECT_NEAR(years_to_write(365 * tera, tera / 86400), 1, 1e-12);
  EXPECT_EQ(years_to_write(1, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(years_to_write(0, 1), 0);
}

}  // namespace
}  // namespace spillway::sim
