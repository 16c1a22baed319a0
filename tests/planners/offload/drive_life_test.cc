#include "planners/offload/drive_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hwprofiles/profile_library.h"

namespace spillway::planners {
namespace {

constexpr double year = 365.0 * 86400;

// 4 drives of 2 (1 to 3) bytes a second for a year, at 2 bytes a second.
TEST(DriveLife, IsExpectedWithARange) {
  const Endurance endurance{.known = true, .bytes = 2 * year, .low = year, .high = 3 * year, .basis = "rated"};
  const DriveLife life = drive_life(endurance, 4, 2);
  EXPECT_DOUBLE_EQ(life.years, 4);
  EXPECT_DOUBLE_EQ(life.low_years, 2);
  EXPECT_DOUBLE_EQ(life.high_years, 6);
  EXPECT_EQ(life.basis, "rated");
}

// Two steps of half a second that write a gigabyte each: 2 GB/s, whatever ran behind the last step's end. Asked for
// more years than the rating as it stands gives, the drives refuse, though more are expected.
TEST(DriveLife, IsReckonedAtThePeriodAndJudgedByTheRatingAsItStands) {
  HardwareProfile hardware = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  DriveGroup group;
  group.name = "scratch";
  group.raid0 = true;
  group.drive = ProfileLibrary::standard().load_nvme("samsung-980-pro-1tb");
  hardware.drives = {group};
  Result result;
  result.steps.resize(2);
  result.step_time = microseconds(500'000);
  result.replayed = microseconds(1'900'000);
  result.drives.push_back({.name = "scratch", .set = "scratch", .drives = 4, .written = Bytes(2'000'000'000)});
  rate_drives(hardware, {}, {}, {}, result);
  ASSERT_TRUE(result.drives[0].life);
  const DriveLife life = *result.drives[0].life;
  EXPECT_DOUBLE_EQ(life.years, drive_life(drive_endurance(group.drive), 4, 2e9).years);
  EXPECT_EQ(shortest_life_years(result), life.years);
  EXPECT_EQ(shortest_rated_years(result), life.low_years);
  ASSERT_LT(life.low_years, life.years);
  EXPECT_EQ(result.drives_refuse, "");
  const double between = (life.low_years + life.years) / 2;
  rate_drives(hardware, {.least_life_years = between}, {}, {}, result);
  EXPECT_THAT(result.drives_refuse, testing::HasSubstr("by its rating as it stands"));
  rate_drives(hardware, {.least_life_years = life.low_years}, {}, {}, result);
  EXPECT_EQ(result.drives_refuse, "");
}

TEST(DriveLife, OfATableIsARangeOrUnknown) {
  EXPECT_EQ(life_cell(3.384, 5.2), "3.38-5.2");
  EXPECT_EQ(life_cell(5.2001, 5.2), "5.2");
  EXPECT_EQ(life_cell(Result{}), "-");
  Result result;
  result.drives.push_back({.name = "scratch", .written = Bytes(0), .model = "unrated"});
  EXPECT_EQ(unrated_writes(result), nullptr) << "nothing wears it";
  result.drives.push_back({.name = "other", .written = Bytes(1), .life = DriveLife{3, 2, 4, "rated", {}}});
  EXPECT_EQ(life_cell(result), "2-3");
  result.drives[0].written = Bytes(1);
  ASSERT_EQ(unrated_writes(result), &result.drives[0]);
  EXPECT_EQ(told_unrated(result.drives[0]), "unrated is not rated: how long it lasts is unknown");
  EXPECT_EQ(life_cell(result), "not rated") << "which of them goes first nobody knows";
  EXPECT_TRUE(std::isinf(shortest_life_years(result)) && std::isinf(shortest_rated_years(result)));
}

}  // namespace
}  // namespace spillway::planners
