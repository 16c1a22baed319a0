// Where a technique pays: what is found is what `techniques` says of the scenario with the edits.
#include "studies/payoff/payoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/input_error.h"
#include "studies/candidates/compare_techniques.h"

namespace spillway::studies {
namespace {

constexpr const char* text = R"({"schema": "spillway-scenario", "version": 1,
  "model": {"name": "gpt2-small", "layers": 4, "sequence": 256, "micro_batch": 2, "gradient_accumulation": 4,
            "pipeline_parallel": 2},
  "hardware": {"profile": "dgx-a100-40gb"},
  "offload": {"least_elements": 10000, "drives": "samsung-990-pro-2tb", "drives_per_machine": 1}})";
const BaseScenario small{text, "small.json", ""};

const PayoffAnswer& answer_of(const PayoffOutcome& outcome, const std::string& axis) {
  for (const PayoffAnswer& answer : outcome.answers)
    if (answer.axis.name == axis) return answer;
  throw InputError("", axis, "no answer along it", "");
}

// Full recomputation saves more the longer the sequences are; each trial is what the two rows say.
TEST(Payoff, IsWhatTechniquesSay) {
  const PayoffQuestion question{.technique = "full", .axes = {"sequence", "micro-batch"}, .saves = 0.03, .slower = 0.5};
  const PayoffOutcome outcome = find_payoff(small, question);
  ASSERT_FALSE(outcome.here.pays);
  ASSERT_TRUE(outcome.found());
  EXPECT_TRUE(outcome.finished());
  for (const PayoffAnswer& answer : outcome.answers) {
    SCOPED_TRACE(answer.axis.name);
    ASSERT_EQ(answer.end, PayoffAnswer::End::found);
    ASSERT_TRUE(answer.least);
    BaseScenario changed = small;
    for (const std::string& edit : answer.least->edits) changed.text = with_setting(changed.text, edit);
    const std::vector<std::string> named = {"full"};
    const TechniqueComparison rows = compare_techniques(changed, technique_candidates(changed, named));
    ASSERT_EQ(rows.rows.size(), 2U);
    EXPECT_EQ(rows.rows[0].row.result.fingerprint, answer.least->plain.result.fingerprint);
    EXPECT_EQ(rows.rows[1].row.result.fingerprint, answer.least->with.result.fingerprint);
    const auto reserved = [&](std::size_t i) {
      return static_cast<double>(rows.rows[i].row.result.memory.peak_reserved.count());
    };
    EXPECT_DOUBLE_EQ(*answer.least->saving(), 1 - reserved(1) / reserved(0));
    EXPECT_GE(*answer.least->saving(), question.saves);
    EXPECT_NEAR(*answer.least->slower(), rows.rows[1].against_plain - 1, 1e-12);
    EXPECT_LE(*answer.least->slower(), question.slower);
    // Nothing nearer that was tried does.
    for (const PayoffTrial& trial : answer.trials)
      EXPECT_FALSE(trial.pays && trial.factor > 1 && trial.factor < answer.least->factor) << trial.value;
  }
}

TEST(Payoff, WherePaysAlreadyNothingIsSought) {
  const PayoffOutcome outcome = find_payoff(small, {.technique = "full", .axes = {}, .saves = 0.001, .slower = 10});
  EXPECT_TRUE(outcome.here.pays);
  EXPECT_TRUE(outcome.found());
  EXPECT_TRUE(outcome.answers.empty());
}

// Work that is used up is no answer; what was looked at to the end is.
TEST(Payoff, AnEarlyEndIsNoNo) {
  PayoffQuestion question{.technique = "full", .axes = {"layers"}, .saves = 0.99, .slower = 0};
  PayoffOutcome outcome = find_payoff(small, question);
  EXPECT_EQ(answer_of(outcome, "layers").end, PayoffAnswer::End::no);
  EXPECT_TRUE(outcome.finished());
  EXPECT_FALSE(outcome.found());
  question.work = 100;
  outcome = find_payoff(small, question);
  EXPECT_EQ(answer_of(outcome, "layers").end, PayoffAnswer::End::unfinished);
  EXPECT_FALSE(outcome.finished());
  EXPECT_LE(outcome.work, 100);
  question.work = 10;  // less than the pair as it stands
  outcome = find_payoff(small, question);
  EXPECT_GT(outcome.times_work, 1);
  EXPECT_FALSE(outcome.here.plain.is_done);
  EXPECT_FALSE(outcome.finished());
  EXPECT_EQ(answer_of(outcome, "layers").end, PayoffAnswer::End::unfinished);
  question.work = PayoffQuestion().work;
  bool is_first = true;
  outcome =
      find_payoff(small, question,
                  {.progress = [&](const Row&, std::size_t, std::size_t) { return std::exchange(is_first, false); }});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_FALSE(outcome.finished());
}

// The four that spillway began with: a trial is the pair of rows of the scenario with its edits, whatever it came to.
TEST(Payoff, TrialsAreRowsOfTechniques) {
  for (const char* const technique : {"ssdtrain", "roam+layout", "chronos", "stalloc"}) {
    SCOPED_TRACE(technique);
    const PayoffOutcome outcome = find_payoff(
        small, {.technique = technique, .axes = {"micro-batch", "sequence"}, .together = true, .saves = 0.99});
    ASSERT_EQ(outcome.answers.size(), 3U);
    for (const PayoffAnswer& answer : outcome.answers) {
      ASSERT_FALSE(answer.trials.empty()) << answer.axis.name;
      const PayoffTrial& trial = answer.trials.front();
      BaseScenario changed = small;
      for (const std::string& edit : trial.edits) changed.text = with_setting(changed.text, edit);
      const std::vector<std::string> named = {technique};
      const TechniqueComparison rows = compare_techniques(changed, technique_candidates(changed, named));
      ASSERT_EQ(rows.rows.size(), 2U);
      EXPECT_EQ(rows.rows[0].row.result.fingerprint, trial.plain.result.fingerprint) << answer.axis.name;
      EXPECT_EQ(rows.rows[1].row.result.fingerprint, trial.with.result.fingerprint);
      EXPECT_EQ(rows.rows[1].row.result.memory.peak_reserved, trial.with.result.memory.peak_reserved);
    }
    EXPECT_EQ(outcome.answers.back().axis.name, "micro-batch x sequence");
    EXPECT_EQ(outcome.answers.back().trials.front().edits.size(), 2U);
  }
  EXPECT_THROW(find_payoff(small, {.technique = "full", .axes = {"sequence"}, .together = true}), InputError);
}

// What carries nothing makes no difference, and takes no replay.
TEST(Payoff, LinksMatterToWhatLeaves) {
  const PayoffOutcome stays = find_payoff(small, {.technique = "full", .axes = {"drives", "pcie"}, .saves = 0.9});
  for (const PayoffAnswer& answer : stays.answers) {
    EXPECT_EQ(answer.end, PayoffAnswer::End::indifferent);
    EXPECT_TRUE(answer.trials.empty());
  }
  const PayoffOutcome leaves = find_payoff(small, {.technique = "ssdtrain", .axes = {"drives"}, .saves = 0.9});
  EXPECT_FALSE(answer_of(leaves, "drives").trials.empty());
}

TEST(Payoff, AxesAreTheScenarios) {
  std::vector<std::string> names;
  for (const PayoffAxis& axis : payoff_axes(small)) names.push_back(axis.name);
  EXPECT_EQ(names.size(), payoff_axis_words().size());
  EXPECT_THROW(find_payoff(small, {.technique = "full", .axes = {"drive"}}), InputError);
  EXPECT_THROW(find_payoff(small, {.technique = "ful"}), InputError);
  EXPECT_THROW(find_payoff(small, {.technique = "plain"}), InputError);
}

}  // namespace
}  // namespace spillway::studies
