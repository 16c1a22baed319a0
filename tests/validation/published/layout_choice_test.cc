#include "validation/published/layout_choice.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace spillway::validation {
namespace {

// Two published layouts of one set-up, another of a larger batch, one that is too large, and a metric of one layer.
CaseFile cases() {
  return parse_cases(R"json({
  "schema": "spillway-cases", "version": 1, "title": "desk",
  "common": {"source": "desk", "metric": "iteration_time", "unit": "s", "hardware.profile": "dgx-a100",
             "model.name": "gpt2-small", "model.sequence": 512, "model.framework": "megatron_2022"},
  "columns": ["id", "value", "model.micro_batch", "model.tensor_parallel", "model.data_parallel", "model.global_batch"],
  "rows": [["slow", 2.0, 1, 4, 2, 64], ["less slow", 1.5, 2, 4, 2, 64], ["more", 3.0, 1, 4, 2, 128],
           ["large", 1.0, 1, 1, 1024, 1024], ["small", 1.0, 1, 1, 1, 8]]
})json",
                     "desk.json");
}

TEST(PublishedSetups, AreTheFastestOfEachModelBatchAndSize) {
  const std::vector<CaseFile> files = {cases()};
  const std::vector<PublishedSetup> setups = published_setups(files, 512);
  ASSERT_EQ(setups.size(), 2U);
  EXPECT_EQ(setups[0].fastest->id, "less slow");
  EXPECT_EQ(setups[1].fastest->id, "more");
}

// A tensor split four ways is a poor choice for so small a model: there are faster layouts, and the published one's
// rank says how many.
TEST(SetupChoice, FindsWhatIsFasterThanPublished) {
  const std::vector<CaseFile> files = {cases()};
  const SetupChoice choice = choose_layout(published_setups(files, 512).front(), 64);
  ASSERT_EQ(choice.skipped, "");
  EXPECT_EQ(choice.gpus, 8);
  EXPECT_EQ(choice.batch, 64);
  EXPECT_EQ(choice.published_layout, "t4 p1 d2 b2 none");
  EXPECT_TRUE(choice.is_as_fast());
  EXPECT_LT(choice.chosen_seconds, choice.published_seconds);
  EXPECT_GT(choice.rank, 3);
  EXPECT_LE(choice.rank, choice.points);
}

// Published as chosen: nothing is faster.
TEST(SetupChoice, OurOwnChoiceRanksFirst) {
  std::vector<CaseFile> files = {cases()};
  const SetupChoice first = choose_layout(published_setups(files, 512).front(), 64);
  int t = 0, p = 0, d = 0, b = 0;
  char recompute[16] = "";
  ASSERT_EQ(std::sscanf(first.chosen_layout.c_str(), "t%d p%d d%d b%d %15s", &t, &p, &d, &b, recompute), 5)
      << first.chosen_layout;
  files[0] = parse_cases(
      R"json({"schema": "spillway-cases", "version": 1, "cases": [{"id": "ours", "source": "desk", "value": 1,
      "unit": "s",
      "metric": "iteration_time", "hardware.profile": "dgx-a100", "model.name": "gpt2-small", "model.sequence": 512,
      "model.framework": "megatron_2022", "model.global_batch": 64, "model.recompute": ")json" +
          std::string(recompute) + R"(", "model.tensor_parallel": )" + std::to_string(t) +
          R"(, "model.pipeline_parallel": )" + std::to_string(p) + R"(, "model.data_parallel": )" + std::to_string(d) +
          R"(, "model.micro_batch": )" + std::to_string(b) + "}]}",
      "ours.json");
  const SetupChoice again = choose_layout(published_setups(files, 512).front(), 64);
  ASSERT_EQ(again.skipped, "");
  EXPECT_EQ(again.chosen_seconds, again.published_seconds);
  EXPECT_EQ(again.rank, 1);
}

}  // namespace
}  // namespace spillway::validation
