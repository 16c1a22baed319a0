// The ways of the document are those of the search: figures, edits, each one once.
#include "studies/answer/fit_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "studies/answer/answer_json.h"

namespace spillway::studies {
namespace {

class FitAnswerOf : public testing::Test {
 protected:
  void seek(const std::string& memory) {
    question_.what = "a small step";
    question_.replays = 60;
    subject_ = fit_subject(question_, {R"({"schema": "spillway-scenario", "version": 1, "title": "a small step",
      "model": {"name": "gpt2-small", "layers": 2, "sequence": 512, "micro_batch": 8},
      "hardware": {"profile": "h100-80gb-1gpu"}, "memory": {"capacity_bytes": )" +
                                           memory + "}}",
                                       "small", ""});
    outcome_ = find_fit(question_, subject_);
    shown_ = shown_ways(outcome_);
  }
  [[nodiscard]] FitFindings findings() const {
    FitFindings found{.question = question_, .subject = subject_, .outcome = outcome_, .shown = shown_};
    found.launched_by.resize(shown_.size());
    return found;
  }

  FitQuestion question_;
  FitSubject subject_;
  FitOutcome outcome_;
  std::vector<ShownWay> shown_;
};

TEST_F(FitAnswerOf, WaysAreTheSearchs) {
  seek("1500000000");
  ASSERT_TRUE(outcome_.any());
  Answer answer = fit_answer(findings(), "spillway fit small");
  ASSERT_EQ(answer.ways.size(), shown_.size());
  std::size_t folded = 0;
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    const AnswerWay& way = answer.ways[i];
    const Row& row = outcome_.ways[shown_[i].way].row;
    EXPECT_EQ(way.number, i + 1);
    EXPECT_EQ(way.name, row.candidate.name);
    EXPECT_EQ(way.edits, row.candidate.edits);
    EXPECT_EQ(way.figures.fingerprint, row.result.fingerprint);
    EXPECT_EQ(way.figures.step_time, row.result.step_time);
    EXPECT_EQ(way.figures.left, room_left(row.result));
    EXPECT_EQ(way.folded.size(), shown_[i].folded.size());
    folded += way.folded.size();
  }
  EXPECT_EQ(answer.ways.size() + folded, outcome_.fitting);
  EXPECT_FALSE(answer.as_given.empty());
  ASSERT_TRUE(answer.now.has_value());
  EXPECT_EQ(answer.now->answer, Verdict::does_not_fit);
  EXPECT_TRUE(std::any_of(answer.ways.front().changes.begin(), answer.ways.front().changes.end(),
                          [](const AnswerChange& change) { return change.worth.starts_with("needed"); }));

  // Drawn: the scenario as given, and each way's memory, whose peak is its row's.
  add_fit_pictures(findings(), answer);
  EXPECT_EQ(answer.drawn, "as given");
  ASSERT_EQ(answer.stages.size(), 1U);
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    ASSERT_EQ(answer.ways[i].outlines.size(), 1U) << i;
    const std::vector<std::int64_t>& curve = answer.ways[i].outlines[0].allocated;
    EXPECT_EQ(*std::max_element(curve.begin(), curve.end()),
              outcome_.ways[shown_[i].way].row.result.memory.peak_allocated.count())
        << answer.ways[i].name;
  }

  // What is too large is told more coarsely, and says so.
  const nlohmann::ordered_json whole = answer_json(answer), small = answer_json(answer, 30'000);
  EXPECT_GT(whole.dump().size(), small.dump().size());
  EXPECT_EQ(whole["rests_on"]["warnings"].size(), answer.warnings.size());
  EXPECT_GT(small["rests_on"]["warnings"].size(), answer.warnings.size());
  EXPECT_EQ(whole["ways"].size(), small["ways"].size());
  EXPECT_FALSE(whole["stages"][0]["passes"].empty());
  EXPECT_TRUE(answer_json(answer, 1)["stages"][0]["passes"].empty());
}

TEST_F(FitAnswerOf, ASearchThatEndedEarlyIsNoNo) {
  seek("100000000");
  ASSERT_FALSE(outcome_.any());
  outcome_.exhausted = true;
  EXPECT_EQ(fit_answer(findings(), "").answer, Verdict::unknown);
  EXPECT_EQ(fit_answer(findings(), "").search_state, "stopped");
  outcome_.exhausted = outcome_.stopped = false;
  EXPECT_EQ(fit_answer(findings(), "").answer, Verdict::does_not_fit);
}

}  // namespace
}  // namespace spillway::studies
