#include "validation/published/projection_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/input_error.h"
#include "validation/published/case_run.h"

namespace spillway::validation {
namespace {

CaseFile published(const std::string& name) {
  for (const std::string& path : published_case_files())
    if (path.ends_with("/" + name + ".json")) return load_cases(path);
  ADD_FAILURE() << name;
  return {};
}

// Every row the authors' code prints, to four digits: half a unit of the last one printed is 2e-4 of a life of 2.521.
TEST(ProjectionCase, GivesEveryRowOfTheAuthorsCode) {
  const std::vector<CaseFile> files = {published("ssdtrain-projection")};
  const std::vector<CaseOutcome> outcomes = run_cases(files);
  ASSERT_EQ(outcomes.size(), 156U);
  for (const CaseOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.skipped, "");
    EXPECT_LT(std::abs(outcome.relative_error()), 2e-4) << outcome.measured->id;
  }
  const std::vector<CaseSummary> summaries = summarize(files, outcomes);
  EXPECT_EQ(summaries.size(), 7U);
  for (const CaseSummary& summary : summaries) EXPECT_TRUE(summary.within()) << to_string(summary.metric);
}

// Skipped rows of the other file all say why.
TEST(ProjectionCase, TheOtherRowsOfTheTableRunOrSayWhyNot) {
  const std::vector<CaseFile> files = {published("offload")};  // outcomes point into it
  EXPECT_EQ(files.front().cases.size(), 108U);
  const std::vector<CaseOutcome> outcomes = run_cases(files);
  for (const CaseOutcome& outcome : outcomes)
    if (outcome.skipped.empty()) {
      EXPECT_LT(std::abs(outcome.relative_error()), 0.16) << outcome.measured->id;
    }
  EXPECT_EQ(std::count_if(outcomes.begin(), outcomes.end(), [](const CaseOutcome& o) { return o.skipped.empty(); }), 9);
}

std::string cases_with(const std::string& keys) {
  return R"({"schema": "spillway-cases", "version": 1, "cases": [{"id": "a", "source": "desk", "unit": "x",
             "metric": "write_amplification", "value": 2, )" +
         keys + "}]}";
}

TEST(ProjectionCase, SaysWhatIsWrong) {
  EXPECT_THROW(parse_cases(cases_with(R"("projection.sparee": 0.3)"), "f"), InputError);
  EXPECT_THROW(parse_cases(cases_with(R"("projection.spare": -1)"), "f"), InputError);
  EXPECT_THROW(parse_cases(cases_with(R"("projection.spare": "lots")"), "f"), InputError);
  EXPECT_THROW(parse_cases(cases_with(R"("projection.layers": 1.5)"), "f"), InputError);
  EXPECT_THROW(parse_cases(cases_with(R"("projection.spare": 0.3, "model.name": "gpt2-xl")"), "f"), InputError);
  const CaseFile lacking = parse_cases(cases_with(R"("projection.layers": 3)"), "f");
  EXPECT_NE(run_cases({lacking}).front().skipped.find("projection.spare"), std::string::npos);
}

}  // namespace
}  // namespace spillway::validation
