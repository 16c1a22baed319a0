#include "validation/published/case_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>

#include "base/byte_source.h"
#include "base/stop.h"
#include "reports/pictures/scatter_svg.h"
#include "tests/validation/published/tiny_cases.h"
#include "validation/published/case_panels.h"
#include "validation/published/case_sample.h"
#include "validation/published/case_work.h"

namespace spillway::validation {
namespace {

using testing::HasSubstr;

std::vector<CaseFile> files_of(const std::string& cases, const std::string& more = "") {
  return {parse_cases(tiny_cases(cases, more), "own.json")};
}

// The same step in several units: throughput x time = sequences of the step, 3 = micro-batch x accumulation.
TEST(CaseRun, MetricsOfOneReplayAgree) {
  const auto files = files_of(R"(
      {"id": "ms", "value": 1, "model.micro_batch": 3},
      {"id": "s", "value": 1, "unit": "s", "model.micro_batch": 3},
      {"id": "samples", "value": 1, "metric": "throughput", "unit": "samples/s", "model.micro_batch": 3},
      {"id": "tokens", "value": 1, "metric": "throughput", "unit": "tokens/s/GPU", "model.micro_batch": 3},
      {"id": "peak", "value": 1, "metric": "peak_allocated", "unit": "MiB", "model.micro_batch": 3},
      {"id": "state", "value": 1, "metric": "state_memory", "unit": "MiB", "model.micro_batch": 3},
      {"id": "activations", "value": 1, "metric": "activation_memory", "unit": "MiB", "model.micro_batch": 3},
      {"id": "forward", "value": 1, "metric": "layer_forward_time", "model.micro_batch": 3},
      {"id": "backward", "value": 1, "metric": "layer_backward_time", "model.micro_batch": 3},
      {"id": "layer", "value": 1, "metric": "layer_time", "model.micro_batch": 3})");
  std::vector<std::size_t> done;
  const auto outcomes = run_cases(files, [&done](std::size_t count, std::size_t total) {
    EXPECT_EQ(total, 1U);  // one replay for all
    done.push_back(count);
    return true;
  });
  ASSERT_EQ(outcomes.size(), 10U);
  EXPECT_EQ(done, (std::vector<std::size_t>{0, 1}));
  const auto at = [&outcomes](std::size_t i) { return outcomes[i].predicted; };
  for (const CaseOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.skipped, "");
    EXPECT_GT(outcome.predicted, 0) << outcome.measured->id;
  }
  EXPECT_DOUBLE_EQ(at(0), 1000 * at(1));
  EXPECT_NEAR(at(2) * at(1), 3, 1e-9);
  EXPECT_NEAR(at(3), at(2) * 128, 1e-6);
  EXPECT_NEAR(at(4), at(5) + at(6), 1e-9);
  EXPECT_DOUBLE_EQ(at(9), at(7) + at(8));
  EXPECT_LT(at(9), at(0));
}

TEST(CaseRun, WhatCantBeSimulatedIsListedWithItsReason) {
  const auto files = files_of(R"(
      {"id": "long", "value": 1, "model.sequence": 4096},
      {"id": "unknown", "value": 1, "model.name": "no-such-model"},
      {"id": "told", "skip": "no set-up"},
      {"id": "sound", "value": 1})");
  const auto outcomes = run_cases(files);
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_NE(outcomes[0].skipped, "");
  EXPECT_THAT(outcomes[1].skipped, HasSubstr("no model of this name"));
  EXPECT_EQ(outcomes[2].skipped, "no set-up");
  EXPECT_EQ(outcomes[3].skipped, "");
  const auto summaries = summarize(files, outcomes);
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0].errors.n, 1U);
}

// Layers: the last number that fits, on a GPU with so little memory that a few do; a ratio is of two of these.
TEST(CaseRun, SeveralStepsMakeOneFigure) {
  const auto of = [](const std::string& id, const std::string& keys) {
    return R"({"id": ")" + id + R"(", "value": 1, "model.micro_batch": 8, "memory.capacity_bytes": 3000000000, )" +
           keys + "}";
  };
  const std::string layers = R"("metric": "trainable_layers", "unit": "layers")", full = R"("model.recompute": "full")";
  const auto files = files_of(
      of("kept", layers) + "," + of("recomputed", layers + "," + full) + "," +
      of("ratio", full + R"(, "metric": "trainable_ratio", "unit": "x", "against": ["model.recompute=none"])") + "," +
      R"({"id": "speed", "value": 1, "model.micro_batch": 128, "metric": "throughput_ratio", "unit": "x",
          "against": ["model.micro_batch=64"]},)" +
      of("time", R"("unit": "s")"));
  const auto outcomes = run_cases(files);
  ASSERT_EQ(outcomes.size(), 5U);
  for (const CaseOutcome& outcome : outcomes) EXPECT_EQ(outcome.skipped, "") << outcome.measured->id;
  const double kept = outcomes[0].predicted, recomputed = outcomes[1].predicted;
  EXPECT_GT(kept, 2);
  EXPECT_GT(recomputed, kept);
  EXPECT_DOUBLE_EQ(outcomes[2].predicted, recomputed / kept);
  EXPECT_GT(outcomes[3].predicted, 1);
  EXPECT_LT(outcomes[3].predicted, 2);
  // It is the edge: one more does not fit.
  for (const int more : {0, 1}) {
    Scenario scenario = files[0].cases[0].scenario;
    scenario.layers = static_cast<std::int64_t>(kept) + more;
    const ModelSpec& model = files[0].models.at("tiny");
    EXPECT_EQ(run(load(scenario, model)).verdict() == Verdict::fits, more == 0);
  }
}

TEST(CaseRun, StopsWhenToldTo) {
  const auto files = files_of(R"({"id": "a", "value": 1}, {"id": "b", "value": 1, "model.micro_batch": 2})");
  EXPECT_THROW(run_cases(files, [](std::size_t, std::size_t) { return false; }), Cancelled);
  EXPECT_THROW(run_cases(files, [](std::size_t done, std::size_t) { return done == 0; }), Cancelled);
  const std::atomic<bool> wanted = true;
  const StopScope scope(&wanted);
  EXPECT_THROW(run_cases(files), Cancelled);  // in the midst of a replay, on whatever thread
}

// Rows in the file's order with the same figures, on one thread or more, though long steps come first.
TEST(CaseRun, DoesNotDependOnThreads) {
  std::string cases;
  for (int i = 1; i <= 12; ++i)
    cases += (i == 1 ? "" : ",") + ("{\"id\": \"" + std::to_string(i) + "\", \"value\": 1, ") +
             "\"model.gradient_accumulation\": " + std::to_string(i) + "}";
  const auto files = files_of(cases);
  const auto predicted = [&files](std::size_t threads) {
    const oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, threads);
    std::vector<double> found;
    for (const CaseOutcome& outcome : run_cases(files)) {
      EXPECT_EQ(outcome.measured->id, std::to_string(found.size() + 1));
      found.push_back(outcome.predicted);
    }
    return found;
  };
  const std::vector<double> one = predicted(1);
  EXPECT_EQ(one.size(), 12U);
  EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
  EXPECT_EQ(predicted(4), one);
}

// Fit cases are summed up apart and never judged; --tolerance replaces the file's own for validation cases.
TEST(CaseRun, OnlyValidationCasesAreJudged) {
  const auto files = files_of(R"({"id": "a", "value": 1e9}, {"id": "b", "value": 1e9, "role": "fit"})",
                              R"("tolerance": {"median": 0.05},)");
  const auto outcomes = run_cases(files);
  auto summaries = summarize(files, outcomes);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].role, "validation");
  EXPECT_FALSE(summaries[0].within());
  EXPECT_EQ(summaries[1].role, "fit");
  EXPECT_TRUE(summaries[1].within());
  const Tolerance wide{.median = 2, .p90 = {}, .kendall = {}};
  EXPECT_TRUE(summarize(files, outcomes, &wide)[0].within());
}

// A derived case is summed up apart from validation, and its formula must give its figure back all the same.
TEST(CaseRun, DerivedCasesAreNoValidation) {
  const auto files = files_of(R"({"id": "a", "value": 1e9}, {"id": "b", "value": 1e9, "role": "derived"})",
                              R"("tolerance": {"median": 0.05},)");
  const auto summaries = summarize(files, run_cases(files));
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].errors.n, 1U);
  EXPECT_EQ(summaries[1].role, "derived");
  EXPECT_FALSE(summaries[1].within());
}

// Of a published range the nearest end is compared with, and within it nothing is wrong.
TEST(CaseRun, ARangeHasNoErrorWithin) {
  const auto files =
      files_of(R"({"id": "in", "value": 1e-3, "value_to": 1e9}, {"id": "below", "value": 1e9, "value_to": 2e9})");
  const auto outcomes = run_cases(files);
  EXPECT_EQ(outcomes[0].relative_error(), 0);
  EXPECT_EQ(outcomes[0].figure(), outcomes[0].predicted);
  EXPECT_EQ(outcomes[1].figure(), 1e9);
  EXPECT_LT(outcomes[1].relative_error(), -0.9);
}

// Recomputing everything takes more time and less memory than keeping it; keeping is what it is.
TEST(CaseRun, ComparisonsAreWithTheStepThatKeepsAll) {
  const std::string again = R"(, "model.recompute": "full", "model.micro_batch": 8})";
  const auto files = files_of(R"({"id": "saving", "value": 50, "metric": "activation_saving", "unit": "%")" + again +
                              R"(, {"id": "slower", "value": 1.3, "metric": "relative_step_time", "unit": "x")" +
                              again + R"(, {"id": "same", "value": 1, "metric": "relative_step_time", "unit": "x"})");
  const auto outcomes = run_cases(files);
  EXPECT_GT(outcomes[0].predicted, 10);
  EXPECT_LT(outcomes[0].predicted, 90);
  EXPECT_GT(outcomes[1].predicted, 1.1);
  EXPECT_EQ(outcomes[2].predicted, 1);
}

// What a group is held to replaces what is asked, which stays visible; --tolerance replaces both.
TEST(CaseRun, AGroupIsHeldToWhatTheFileStates) {
  const std::string cases = R"({"id": "a", "value": 1e9}, {"id": "b", "value": 2e9, "source": "other"})";
  const auto files = files_of(cases, R"("tolerance": {"median": 0.05},
      "held_to": [{"source": "desk", "metric": "iteration_time", "median": 1}],)");
  const auto outcomes = run_cases(files);
  const auto summaries = summarize(files, outcomes);
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_TRUE(summaries[0].within());
  EXPECT_EQ(summaries[0].missed().median, 0.05);
  EXPECT_EQ(summaries[0].held_to.median, 1);
  EXPECT_FALSE(summaries[1].within());
  EXPECT_TRUE(summaries[1].held_to.states_nothing());
  const Tolerance strict{.median = 0.5, .p90 = {}, .kendall = {}};
  EXPECT_FALSE(summarize(files, outcomes, &strict)[0].within());
}

// Two of each group, from the half with least work, the same ones whatever stands beside them.
TEST(CaseSample, HasSomeOfEveryGroup) {
  std::string cases = R"({"id": "skipped", "skip": "no set-up"})";
  for (int i = 1; i <= 20; ++i)
    for (const char* metric : {"iteration_time", "layer_time"})
      cases += ", {\"id\": \"" + std::to_string(i) + metric + "\", \"value\": 1, \"metric\": \"" + metric +
               "\", \"model.gradient_accumulation\": " + std::to_string(i) + "}";
  const std::string alone = R"(, {"id": "alone", "value": 1, "source": "other", "model.gradient_accumulation": 30})";
  auto files = files_of(cases + alone), fewer = files_of(cases);
  EXPECT_GT(work_of(files[0], files[0].cases[40]), work_of(files[0], files[0].cases[1]));
  keep_sample(files, 2);
  keep_sample(fewer, 2);
  ASSERT_EQ(files[0].cases.size(), 6U);  // one skipped, two of each metric, one alone
  ASSERT_EQ(fewer[0].cases.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(files[0].cases[i].id, fewer[0].cases[i].id);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_LE(files[0].cases[i].scenario.training.gradient_accumulation, 10);
  EXPECT_EQ(files[0].cases[1].setup, files[0].cases[2].setup);  // one replay for both metrics
  EXPECT_EQ(files[0].cases[5].id, "alone");
}

TEST(CaseRun, ThePictureHasAPointForEveryCaseThatRan) {
  const auto files = files_of(R"({"id": "a", "value": 2}, {"id": "b", "value": 3, "model.micro_batch": 2},
      {"id": "c", "skip": "no set-up"})");
  const auto outcomes = run_cases(files);
  const std::string svg = scatter_svg("A & B", scatter_panels(outcomes, summarize(files, outcomes)));
  std::size_t points = 0;
  for (std::size_t at = svg.find("r=\"2.6\""); at != std::string::npos; at = svg.find("r=\"2.6\"", at + 1)) ++points;
  EXPECT_EQ(points, 2U);
  EXPECT_THAT(svg, HasSubstr("A &amp; B"));
  EXPECT_THAT(svg, HasSubstr("desk: 2 cases"));
}

}  // namespace
}  // namespace spillway::validation
