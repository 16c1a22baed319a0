// What a launch left open, or said in words that a scenario doesn't have, and the verdict that hangs on it.
#include "scenario/hinges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenario/evaluator.h"

namespace spillway::scenario {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// `settings` on top of a step of GPT-2 with `gib` of memory and what its import says.
Result hinged(double gib, const std::string& import, const std::vector<std::string>& settings = {},
              const std::string& model = R"(, "sequence": 512, "micro_batch": 4, "precision": "bf16_mixed")") {
  const auto bytes = static_cast<std::int64_t>(gib * (1 << 30));
  return run(load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1,
      "model": {"name": "gpt2-small")" +
                                     model + R"(}, "hardware": {"profile": "h100-80gb-1gpu"},
      "memory": {"capacity_bytes": )" +
                                     std::to_string(bytes) + R"(}, "import": {)" + import + "}}",
                                 "test", "", settings)));
}

std::string flag(const std::string& effect, std::int64_t at_most = 0, const std::string& value = "1") {
  std::string text = R"("unsayable": [{"flag": "--x", "value": ")" + value +
                     R"(", "place": "a.sh: line 3", "effect": ")" + effect + '"';
  if (at_most > 0) text += R"(, "at_most_bytes": )" + std::to_string(at_most);
  return text + "}]";
}

constexpr double enough = 20, little = 3;
const std::string open_batch = R"("open": ["model.micro_batch"])";
const std::string without_batch = R"(, "sequence": 512, "precision": "bf16_mixed")";

TEST(Hinges, WithoutAnythingOpenTheVerdictIsFirm) {
  EXPECT_EQ(hinged(enough, "").verdict(), Verdict::fits);
  EXPECT_EQ(hinged(little, "").verdict(), Verdict::does_not_fit);
  EXPECT_EQ(hinged(enough, flag("time")).verdict(), Verdict::fits);
}

// The largest that fits is told, and is the largest: what `run` says of it and of one more.
TEST(Hinges, AnOpenBatchIsToldByTheLargestThatFits) {
  const Result result = hinged(6, open_batch, {}, without_batch);
  EXPECT_EQ(result.verdict(), Verdict::unknown);
  EXPECT_EQ(result.as_replayed(), Verdict::fits);
  EXPECT_TRUE(result.is_in_doubt());
  ASSERT_EQ(result.hangs_on.size(), 1u);
  ASSERT_THAT(result.hangs_on[0], StartsWith("if micro_batch <= "));
  EXPECT_THAT(result.hangs_on[0], HasSubstr(" at 512 tokens (not stated)"));
  const int most = std::stoi(result.hangs_on[0].substr(std::string("if micro_batch <= ").size()));
  const auto with = [&](int batch) {
    return hinged(6, open_batch, {"model.micro_batch=" + std::to_string(batch)}, without_batch);
  };
  EXPECT_GE(most, 2);
  EXPECT_TRUE(is_yes(with(most).verdict()));
  EXPECT_EQ(with(most + 1).verdict(), Verdict::does_not_fit);
}

TEST(Hinges, WhatDoesNotFitWhateverTheBatchIsANo) {
  EXPECT_EQ(hinged(2, open_batch, {}, without_batch).verdict(), Verdict::does_not_fit);
  const std::string both = R"("open": ["model.micro_batch", "model.sequence"])";
  EXPECT_EQ(hinged(2, both, {}, "").verdict(), Verdict::does_not_fit);
  EXPECT_EQ(hinged(6, both, {}, "").verdict(), Verdict::unknown);
}

TEST(Hinges, AnOpenPrecisionHangsOnlyWhereItsEndsDiffer) {
  const std::string open = R"("open": ["model.precision"])";
  const std::string model = R"(, "sequence": 512, "micro_batch": 4)";
  EXPECT_EQ(hinged(enough, open, {}, model).verdict(), Verdict::fits);
  EXPECT_EQ(hinged(2, open, {}, model).verdict(), Verdict::does_not_fit);
  std::vector<Verdict> between;
  for (double gib = 2.5; gib < 8; gib += 0.25) between.push_back(hinged(gib, open, {}, model).verdict());
  EXPECT_NE(std::find(between.begin(), between.end(), Verdict::unknown), between.end());
}

TEST(Hinges, FlagsTurnOnlyWhatTheyCan) {
  EXPECT_THAT(hinged(enough, flag("memory+")).hangs_on, ElementsAre(HasSubstr("--x (a.sh: line 3)")));
  EXPECT_THAT(hinged(little, flag("memory+")).hangs_on, IsEmpty());
  EXPECT_THAT(hinged(enough, flag("memory-")).hangs_on, IsEmpty());
  EXPECT_THAT(hinged(enough, flag("unknown")).hangs_on, ElementsAre(HasSubstr("is not known")));
  EXPECT_THAT(hinged(little, flag("memory~")).hangs_on, ElementsAre(HasSubstr("saves it")));
}

// No more than is free: firm.
TEST(Hinges, ABoundThatIsFreeTurnsNothing) {
  EXPECT_THAT(hinged(enough, flag("memory+", 1 << 20)).hangs_on, IsEmpty());
  EXPECT_THAT(hinged(enough, flag("memory+", std::int64_t{40} << 30)).hangs_on, ElementsAre(HasSubstr("40.00 GiB")));
}

// What keeps fewer activations can't help where no step with fewer would fit.
TEST(Hinges, WhatSavesActivationsCannotSaveStates) {
  EXPECT_THAT(hinged(1.5, flag("memory-")).hangs_on, IsEmpty());
  const std::string large = R"(, "sequence": 512, "micro_batch": 32)";
  EXPECT_THAT(hinged(6, flag("memory-"), {}, large).hangs_on, ElementsAre(StartsWith("unless --x (a.sh: line 3)")));
}

// A paged optimizer's states leave, and nothing else.
TEST(Hinges, WhatSavesStatesCannotSaveActivations) {
  const std::string paged = flag("memory-", 0, "paged_adamw_8bit"), large = R"(, "sequence": 512, "micro_batch": 32)";
  EXPECT_THAT(hinged(6, paged, {}, large).hangs_on, IsEmpty());
  EXPECT_THAT(hinged(little, paged).hangs_on, ElementsAre(StartsWith("unless --x (a.sh: line 3)")));
}

// States of few bytes are counted as AdamW's on the CPU: they may save the host's memory, and no GPU's.
TEST(Hinges, StatesOnTheCpuMaySaveTheHostsMemory) {
  std::string small = flag("memory-", 0, "adamw_bnb_8bit");
  small.replace(small.find("--x"), 3, "--optim");
  const std::vector<std::string> on_cpu = {"model.optimizer_device=cpu"};
  EXPECT_THAT(hinged(enough, small, on_cpu).hangs_on, IsEmpty()) << "it fits";
  EXPECT_THAT(hinged(1, small, on_cpu).hangs_on, IsEmpty()) << "the GPU's memory is short";
  const Result short_host = hinged(enough, small, {"model.optimizer_device=cpu", "hardware.set.host.dram=1 GiB"});
  EXPECT_THAT(short_host.hangs_on, ElementsAre(StartsWith("unless --optim (a.sh: line 3)")));
  EXPECT_EQ(short_host.verdict(), Verdict::unknown);
}

}  // namespace
}  // namespace spillway::scenario
