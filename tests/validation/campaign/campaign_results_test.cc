#include "validation/campaign/campaign_results.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/input_error.h"

namespace spillway::validation {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CampaignFolder : public testing::Test {
 protected:
  CampaignFolder() {
    std::string pattern = (fs::temp_directory_path() / "campaign-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CampaignFolder() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  // CRC-32 of "123456789" is 0xCBF43926 = 3421780262 (the check value of ISO 3309).
  void write_campaign(const std::string& comparisons, const std::string& pack_bytes = "9",
                      const std::string& name = "campaign.tar.gz.00") const {
    write("campaign.json", R"({"schema": "spillway-campaign", "version": 1, "spillway": "spillway 0.2.0",
      "machine": {"gpu": "NVIDIA H100 80GB HBM3"}, "finished": true,
      "steps": [{"name": "a", "phase": "smoke", "status": "done", "seconds": 1.5},
                {"name": "b", "phase": "models", "status": "skipped", "reason": "no GPU", "earlier": false}],
      "allocator": [{"check": "plain", "confirmed": true},
                    {"check": "gc", "confirmed": false, "differences": ["segment.all.peak: 2 in PyTorch, 1 here"]}],
      "comparisons": [)" + comparisons +
                               R"(],
      "packs": [{"name": ")" + name +
                               R"(", "bytes": )" + pack_bytes + R"(, "crc32": 3421780262}],
      "left_out": [{"name": "a/large", "bytes": 7}], "kept": {"gpu.json": {"any": [1]}}})");
  }

  std::string error() const {
    try {
      read_campaign(folder_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(CampaignFolder, IsReadAsWritten) {
  write_campaign("");
  write("campaign.tar.gz.00", "123456789 and what was being written when the machine went away");
  const CampaignResults results = read_campaign(folder_);
  EXPECT_EQ(results.program, "spillway 0.2.0");
  EXPECT_EQ(results.machine.front().second, "NVIDIA H100 80GB HBM3");
  EXPECT_TRUE(results.is_finished);
  ASSERT_THAT(results.steps, SizeIs(2));
  EXPECT_EQ(results.steps[0].status, StepStatus::done);
  EXPECT_EQ(results.steps[1].reason, "no GPU");
  EXPECT_EQ(results.left_out.front(), std::pair(std::string("a/large"), Bytes(7)));
  ASSERT_THAT(results.allocator, SizeIs(2));
  EXPECT_TRUE(results.allocator[0].is_confirmed);
  EXPECT_THAT(results.allocator[0].differences, IsEmpty());
  EXPECT_FALSE(results.allocator[1].is_confirmed);
  EXPECT_THAT(results.allocator[1].differences, testing::ElementsAre("segment.all.peak: 2 in PyTorch, 1 here"));
  EXPECT_THAT(campaign_errors(results), IsEmpty());
}

TEST_F(CampaignFolder, ErrorsAreThoseOfWhatWasMeasuredAndPredicted) {
  const auto row = [](const std::string& name, const std::string& rest) {
    return R"({"case": ")" + name + R"(", "metric": "step_time", "unit": "ns")" + rest + "}";
  };
  write_campaign(row("a", R"(, "measured": 100, "blind": 110, "blind_profile": "measured", "from_trace": 99)") + "," +
                 row("b", R"(, "measured": 200, "blind": 190)") + "," + row("not run", R"(, "blind": 1)") + "," +
                 row("not predicted", R"(, "measured": 1)"));
  write("campaign.tar.gz.00", "123456789");
  const std::vector<CampaignErrors> errors = campaign_errors(read_campaign(folder_));
  ASSERT_THAT(errors, SizeIs(2));
  EXPECT_EQ(errors[0].column, "blind");
  EXPECT_EQ(errors[0].errors.n, 2);
  EXPECT_NEAR(errors[0].errors.median, (0.10 - 0.05) / 2, 1e-12);  // predicted / measured - 1
  EXPECT_NEAR(errors[0].errors.worst_abs, 0.10, 1e-12);
  EXPECT_EQ(errors[1].column, "from_trace");
  EXPECT_NEAR(errors[1].errors.median, -0.01, 1e-12);
}

TEST_F(CampaignFolder, TheTrainersErrorsComeWithWhatTheyDontSay) {
  const auto row = [](const std::string& name, const std::string& rest) {
    return R"({"case": ")" + name + R"(", "metric": "trainer_step_time", "unit": "ns", "measured": 1)" + rest + "}";
  };
  write_campaign(row("a", R"(, "measured_share": 0.95)") + "," +
                 row("b", R"(, "measured_share": 0.93, "verdict_is_right": false)") + "," +
                 row("c", R"(, "verdict_is_right": true)") + "," + row("d", ""));
  write("campaign.tar.gz.00", "123456789");
  const TrainerCaveats found = trainer_caveats(read_campaign(folder_));
  EXPECT_EQ(found.least_measured, 0.93);
  EXPECT_EQ(found.most_measured, 0.95);
  EXPECT_EQ(found.verdicts, 2);
  EXPECT_EQ(found.right, 1);
}

TEST_F(CampaignFolder, WhatIsNotWholeIsRefused) {
  EXPECT_THAT(error(), HasSubstr("campaign.json: is not there"));
  write_campaign("");
  EXPECT_THAT(error(), HasSubstr("campaign.tar.gz.00"));
  write("campaign.tar.gz.00", "12345678");
  EXPECT_THAT(error(), HasSubstr("is cut off: 8 of 9 bytes"));
  write("campaign.tar.gz.00", "123456780");
  EXPECT_THAT(error(), HasSubstr("is damaged"));
  write("campaign.tar.gz.00", "123456789");
  EXPECT_EQ(error(), "");
  write_campaign("", "9", "../campaign.tar.gz.00");
  EXPECT_THAT(error(), HasSubstr("is no file beside it"));
  write("campaign.json", R"({"schema": "spillway-campaign", "version": 1, "steps": [)");
  EXPECT_THAT(error(), HasSubstr("not valid JSON"));
  write("campaign.json", R"({"schema": "spillway-scenario", "version": 1})");
  EXPECT_THAT(error(), HasSubstr("spillway-campaign"));
}

TEST_F(CampaignFolder, FiguresThatCannotBeAreRefused) {
  write("campaign.tar.gz.00", "123456789");
  write_campaign(R"({"case": "a", "metric": "step_time", "unit": "ns", "measured": 0})");
  EXPECT_THAT(error(), HasSubstr("/comparisons/0/measured"));
  write_campaign(R"({"case": "a", "metric": "step_time", "unit": "ns", "guess": 1})");
  EXPECT_THAT(error(), HasSubstr("guess"));
}

}  // namespace
}  // namespace spillway::validation
