#include "validation/published/case_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/input_error.h"
#include "tests/validation/published/tiny_cases.h"

namespace spillway::validation {
namespace {

using testing::HasSubstr;

std::string message(const std::string& text) {
  try {
    static_cast<void>(parse_cases(text, "own.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CaseFile, ACaseHasWhatIsCommonUnlessItSaysOtherwise) {
  const CaseFile file =
      parse_cases(tiny_cases(R"({"id": "a", "value": 3}, {"id": "b", "value": 2, "unit": "s", "role": "fit",
                     "model.micro_batch": 4, "source": "other"})"),
                  "own.json");
  ASSERT_EQ(file.cases.size(), 2U);
  EXPECT_EQ(file.cases[0].source, "desk");
  EXPECT_EQ(file.cases[0].unit, "ms");
  EXPECT_EQ(file.cases[0].role, "validation");
  EXPECT_EQ(file.cases[0].scenario.training.micro_batch, 1);
  EXPECT_EQ(file.cases[1].source, "other");
  EXPECT_EQ(file.cases[1].unit, "s");
  EXPECT_EQ(file.cases[1].role, "fit");
  EXPECT_EQ(file.cases[1].scenario.training.micro_batch, 4);
  EXPECT_EQ(file.models.count("tiny"), 1U);
}

TEST(CaseFile, RowsAreCasesAndNullLeavesWhatIsCommon) {
  const CaseFile file = parse_cases(
      tiny_cases("", R"("columns": ["id", "value", "model.micro_batch", "hardware.set.gpu.memory_bandwidth"],
                        "rows": [["a", 1, 2, null], ["b", 2.5, null, "x0.5"]],)"),
      "own.json");
  ASSERT_EQ(file.cases.size(), 2U);
  EXPECT_EQ(file.cases[0].scenario.training.micro_batch, 2);
  EXPECT_TRUE(file.cases[0].scenario.hardware_overrides.empty());
  EXPECT_EQ(file.cases[1].scenario.training.micro_batch, 1);
  ASSERT_EQ(file.cases[1].scenario.hardware_overrides.size(), 1U);
  EXPECT_EQ(file.cases[1].scenario.hardware_overrides[0].first, "gpu.memory_bandwidth");
}

TEST(CaseFile, RangesEndAboveTheirBeginning) {
  const CaseFile file = parse_cases(tiny_cases(R"({"id": "a", "value": 1, "value_to": 2})"), "own.json");
  EXPECT_EQ(file.cases[0].measured_to, 2);
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 2, "value_to": 1})")), HasSubstr("value_to"));
}

// A skipped case needs no figure and no set-up.
TEST(CaseFile, SkippedCasesOnlyNeedAReason) {
  const CaseFile file = parse_cases(tiny_cases(R"({"id": "a", "skip": "no micro-batch stated"})"), "own.json");
  ASSERT_EQ(file.cases.size(), 1U);
  EXPECT_EQ(file.cases[0].skip, "no micro-batch stated");
}

TEST(CaseFile, TolerancesAreOptional) {
  EXPECT_FALSE(parse_cases(tiny_cases(""), "own.json").tolerance.median);
  const CaseFile file = parse_cases(tiny_cases("", R"("tolerance": {"median": 0.05, "kendall": 0.9},)"), "own.json");
  EXPECT_EQ(file.tolerance.median, 0.05);
  EXPECT_EQ(file.tolerance.kendall, 0.9);
  EXPECT_FALSE(file.tolerance.p90);
}

TEST(CaseFile, GroupsAreHeldToWhatTheyReach) {
  const CaseFile file = parse_cases(tiny_cases(R"({"id": "a", "value": 1}, {"id": "b", "value": 1, "source": "other"})",
                                               R"("tolerance": {"median": 0.05, "p90": 0.1, "kendall": 0.9},
                    "held_to": [{"source": "other", "metric": "iteration_time", "p90": 0.2, "kendall": 0.8}],)"),
                                    "own.json");
  ASSERT_EQ(file.held_to.size(), 1U);
  EXPECT_EQ(file.held_to[0].source, "other");
  EXPECT_EQ(file.held_to[0].metric, Metric::iteration_time);
  const Tolerance tolerance = file.tolerance.but_for(file.held_to[0].tolerance);
  EXPECT_EQ(tolerance.median, 0.05);
  EXPECT_EQ(tolerance.p90, 0.2);
  EXPECT_EQ(tolerance.kendall, 0.8);
}

// A group held to more than is asked, or that has no case to judge, is a mistake in the file.
TEST(CaseFile, HeldGroupsMustBeSomeAndWiderThanAsked) {
  const auto held = [](const std::string& group) {
    return message(tiny_cases(R"({"id": "a", "value": 1}, {"id": "b", "value": 1, "source": "x", "role": "fit"})",
                              R"("tolerance": {"p90": 0.1, "kendall": 0.9}, "held_to": [)" + group + "],"));
  };
  const std::string desk = R"({"source": "desk", "metric": "iteration_time", )";
  EXPECT_EQ(held(desk + R"("p90": 0.11})"), "no error");
  EXPECT_EQ(held(desk + R"("kendall": 0.89})"), "no error");
  EXPECT_THAT(held(desk + R"("p90": 0.1})"), HasSubstr("no wider"));
  EXPECT_THAT(held(desk + R"("kendall": 0.91})"), HasSubstr("no wider"));
  EXPECT_THAT(held(desk + R"("median": 0.5})"), HasSubstr("no wider"));  // which is not asked
  EXPECT_THAT(held(R"({"source": "desk", "metric": "iteration_time"})"), HasSubstr("/held_to/0"));
  EXPECT_THAT(held(R"({"source": "desk", "metric": "mfu", "p90": 0.2})"), HasSubstr("no validation case"));
  EXPECT_THAT(held(R"({"source": "x", "metric": "iteration_time", "p90": 0.2})"), HasSubstr("no validation case"));
  EXPECT_THAT(held(desk + R"("p90": 0.2, "worst": 1})"), HasSubstr("worst"));
}

TEST(CaseFile, MistakesNameThePlaceAndTheNearestName) {
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "model.micro_bach": 2})")),
              HasSubstr("did you mean micro_batch?"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "metric": "iteration_tme"})")),
              HasSubstr("did you mean iteration_time?"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "unit": "GB"})")), HasSubstr("'GB' is no unit"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "against": ["model.sequence=64"]})")),
              HasSubstr("not of iteration_time"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "metric": "trainable_ratio", "unit": "x"})")),
              HasSubstr("nothing to compare with"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "metric": "trainable_ratio", "unit": "x",
                                     "against": ["model.sequnce=64"]})")),
              HasSubstr("did you mean"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a"})")), HasSubstr("no positive \"value\""));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": -1})")),
              HasSubstr("/cases/0/value: expected a number above 0"));
  EXPECT_THAT(message(tiny_cases(R"({"value": 1})")), HasSubstr("no \"id\""));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1}, {"id": "a", "value": 1})")), HasSubstr("occurs twice"));
  EXPECT_THAT(message(tiny_cases(R"({"id": "a", "value": 1, "role": "test"})")),
              HasSubstr("take one of validation, fit"));
  EXPECT_THAT(message(tiny_cases("", R"("columns": ["id"], "rows": [["a", 1]],)")), HasSubstr("/rows/0"));
  EXPECT_THAT(message(R"({"schema": "spillway-scenario", "version": 1})"), HasSubstr("not a file of cases"));
  EXPECT_THAT(message("[1"), HasSubstr("own.json"));
}

}  // namespace
}  // namespace spillway::validation
