// The search for ways that fit: never worse than what other commands find, and every figure a replay's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <atomic>
#include <set>

#include "base/stop.h"
#include "planners/offload/hybrid_search.h"
#include "planners/technique/technique_table.h"
#include "scenario/evaluator.h"
#include "studies/fit/fit_search.h"
#include "studies/fit/other_training.h"
#include "studies/sweep/layout_sweep.h"

namespace spillway::studies {
namespace {

// One GPU with too little memory for the step as given.
FitQuestion tight(const std::string& bytes) {
  return {.what = "gpt2-small",
          .machine = "1xh100",
          .settings = {"model.layers=6", "model.micro_batch=4", "memory.capacity_bytes=" + bytes},
          .sequence = 512,
          .global_batch = 8};
}

double seconds(const WayRow& row) { return to_seconds(row.result.step_time); }

TEST(FindFit, IsNeverWorseThanRunAndOffloadPlans) {
  for (const char* bytes : {"8000000000", "2600000000"}) {
    const FitQuestion question = tight(bytes);
    const FitSubject subject = fit_subject(question);
    const FitOutcome outcome = find_fit(question, subject);
    ASSERT_TRUE(outcome.any()) << bytes;
    const WayRow& best = outcome.ways.front().row;
    // As given, and under each technique by itself.
    std::vector<Way> ways = {{"as given", {}}};
    for (const TechniqueWay* way : technique_ways())
      if (way->settings != std::vector<std::string>{"memory.allocator=ideal"})
        ways.push_back({way->name, way->settings});
    for (const WayRow& row : evaluate_ways(subject.scenario, ways))
      if (row.works()) {
        EXPECT_LE(seconds(best), seconds(row)) << row.way.name;
      }
    // As `plan offload` does it.
    const LoadedScenario loaded = load(subject.parsed);
    const HybridOutcome mix = plan_hybrid(loaded.trace, Evaluator(loaded), {.runtime = loaded.scenario.offload});
    if (mix.best.fits()) {
      EXPECT_LE(best.result.step_time, mix.best.result.step_time);
    }
  }
}

TEST(FindFit, FiguresAreThoseOfRun) {
  const FitQuestion question = tight("2600000000");
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  ASSERT_TRUE(outcome.any());
  EXPECT_FALSE(outcome.stopped);
  const WayRow& best = outcome.ways.front().row;
  std::string text = subject.scenario.text;
  for (const std::string& setting : best.way.settings) text = with_setting(text, setting);
  const Result alone = run(load(parse_scenario(text, "best.json", "")));
  EXPECT_EQ(alone.fingerprint, best.result.fingerprint);
  EXPECT_EQ(alone.step_time, best.result.step_time);
  EXPECT_EQ(alone.memory.peak_reserved, best.result.memory.peak_reserved);
  // Ranked: those that fit first, by the goal; no way twice.
  std::set<std::vector<std::string>> seen;
  for (std::size_t i = 0; i < outcome.ways.size(); ++i) {
    const WayRow& row = outcome.ways[i].row;
    EXPECT_TRUE(seen.insert(row.way.settings).second) << row.way.name;
    EXPECT_EQ(row.is_yes(), i < outcome.fitting);
    if (i > 0 && i < outcome.fitting) {
      EXPECT_LE(seconds(outcome.ways[i - 1].row), seconds(row));
    }
  }
  for (const FitAblation& each : outcome.worth) {
    EXPECT_FALSE(outcome.ways[each.way].row.works() && seconds(outcome.ways[each.way].row) < seconds(best));
    EXPECT_NE(each.way, 0U);
  }
}

// Of a scenario that says its batch by accumulation, or by its micro-batch alone: edits of the file itself make the
// row.
TEST(FindFit, EditsAreOfTheScenarioAsItWas) {
  for (const char* batch : {R"("micro_batch": 8)", R"("micro_batch": 8, "gradient_accumulation": 2)"}) {
    const std::string text = fmt::format(
        R"({{"schema": "spillway-scenario", "version": 1, "model": {{"name": "gpt2-small", "layers": 4, "sequence": 512, {}}},
            "hardware": {{"profile": "h100-80gb-1gpu"}}, "memory": {{"capacity_bytes": "2.6 GiB"}}}})",
        batch);
    FitQuestion question;
    question.what = "own.json";
    question.replays = 20;
    const FitOutcome outcome = find_fit(question, fit_subject(question, {text, "own.json", ""}));
    ASSERT_TRUE(outcome.any());
    int other_micro_batch = 0;
    for (const FitWay& way : outcome.ways) {
      if (!way.row.ran()) continue;
      std::string edited = text;
      for (const std::string& setting : way.row.way.settings) edited = with_setting(edited, setting);
      EXPECT_EQ(run(load(parse_scenario(edited, "own.json", ""))).step_time, way.row.result.step_time)
          << way.row.way.name;
      other_micro_batch += edited.find("micro_batch\": 8") == std::string::npos ? 1 : 0;
    }
    EXPECT_GT(other_micro_batch, 0);
  }
}

TEST(FindFit, DoesNotDependOnThreads) {
  const FitQuestion question = tight("2600000000");
  const FitSubject subject = fit_subject(question);
  const FitOutcome a = find_fit(question, subject);
  const oneapi::tbb::global_control one(oneapi::tbb::global_control::max_allowed_parallelism, 1);
  const FitOutcome b = find_fit(question, subject);
  ASSERT_EQ(a.ways.size(), b.ways.size());
  for (std::size_t i = 0; i < a.ways.size(); ++i) {
    EXPECT_EQ(a.ways[i].row.way.settings, b.ways[i].row.way.settings);
    EXPECT_EQ(a.ways[i].row.result.fingerprint, b.ways[i].row.result.fingerprint);
  }
}

// As fast as the fastest layout of the search that `capacity` and `validate choices` use, recomputing or not.
TEST(FindFit, IsNeverWorseThanTheSearchOfLayouts) {
  FitQuestion question{.what = "gpt2-medium", .machine = "8xa100", .sequence = 1024, .global_batch = 32};
  question.settings = {"memory.capacity_bytes=9000000000"};
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  ASSERT_TRUE(outcome.any());
  for (const char* recompute : {"none", "full"}) {
    LayoutSpace space{
        .gpus = 8, .tensor_parallel = {1, 2, 4, 8}, .pipeline_parallel = {1, 2, 4, 8}, .micro_batch = {1, 2, 4}};
    space.settings = {std::string("model.recompute=") + recompute};
    SweepStore store;
    const SweepOutcome layouts = run_sweep(layout_sweep(subject.scenario.text, "layouts.json", "", space), {}, store);
    if (const SweepRow* fastest = fastest_layout(layouts)) {
      EXPECT_LE(seconds(outcome.ways.front().row), fastest->replayed.step_seconds) << recompute;
    }
  }
}

// What no single edit of a layout that fits leads to: sequences split in eight hold too much under the plain loss, and
// under the fused one in the blocks of PyTorch's allocator; under both edits they are the fastest.
TEST(FindFit, LooksBeyondLayoutsThatFitAsTheyAre) {
  FitQuestion question{
      .what = "llama-3-8b", .machine = "8xh100", .same_maths = true, .sequence = 131072, .global_batch = 8};
  question.settings = {"model.layers=6", "memory.capacity_bytes=40000000000"};
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  ASSERT_TRUE(outcome.any());
  EXPECT_FALSE(outcome.exhausted);
  const std::vector<std::string> layout = {"model.context_parallel=8", "model.data_parallel=1", "model.zero_stage=1"};
  std::vector<Way> ways = {{"layout", layout}, {"lean", layout}, {"lean and packed", layout}};
  for (const std::size_t i : {1U, 2U}) ways[i].settings.emplace_back("model.loss=fused");
  ways[2].settings.emplace_back("memory.allocator=torch-expandable");
  const std::vector<WayRow> rows = evaluate_ways(subject.scenario, ways);
  EXPECT_FALSE(rows[0].is_yes());
  EXPECT_FALSE(rows[1].is_yes());
  ASSERT_TRUE(rows[2].works()) << rows[2].error;
  EXPECT_LE(seconds(outcome.ways.front().row), seconds(rows[2]));
}

TEST(FindFit, SaysWhatIsMissingWhereNothingFits) {
  const FitQuestion question = tight("200000000");
  const FitOutcome outcome = find_fit(question, fit_subject(question));
  EXPECT_FALSE(outcome.any());
  EXPECT_TRUE(outcome.worth.empty());
  ASSERT_FALSE(outcome.ways.empty());
  const WayRow& nearest = outcome.ways.front().row;
  EXPECT_NE(nearest.shortage(), "");
  for (const FitWay& way : outcome.ways)
    if (way.row.ran() && way.row.result.host_memory.verdict() != Verdict::does_not_fit) {
      EXPECT_LE(nearest.result.memory.excess(), way.row.result.memory.excess());
    }
}

TEST(FindFit, GoalsRankBySomethingElse) {
  FitQuestion question = tight("2600000000");
  question.replays = 40;
  const auto best_for = [&](FitGoal goal) {
    question.goal = goal;
    const FitOutcome outcome = find_fit(question, fit_subject(question));
    EXPECT_TRUE(outcome.any());
    return outcome.ways.front().row;
  };
  const WayRow fast = best_for(FitGoal::speed), small = best_for(FitGoal::memory), few = best_for(FitGoal::change),
               lasting = best_for(FitGoal::life);
  EXPECT_LE(small.result.memory.peak_reserved, fast.result.memory.peak_reserved);
  EXPECT_LE(few.way.settings.size(), fast.way.settings.size());
  EXPECT_EQ(few.way.settings.size(), 1U);
  EXPECT_FALSE(lasting.life_years);
}

TEST(FindFit, TakesTheFewestGpus) {
  FitQuestion question{.what = "gpt2-medium",
                       .machine = "8xa100",
                       .goal = FitGoal::gpus,
                       .sequence = 1024,
                       .global_batch = 8,
                       .replays = 40};
  question.settings = {"memory.capacity_bytes=4500000000"};
  const FitOutcome outcome = find_fit(question, fit_subject(question));
  ASSERT_TRUE(outcome.any());
  EXPECT_LT(outcome.ways.front().row.gpus, 8);
}

// Adapters can't be trained in fp8: that is said of them, and no question about all weights fails by it.
TEST(OtherTrainings, ThatCantBeRunSayWhy) {
  FitQuestion question = tight("8000000000");
  question.replays = 10;
  question.settings.emplace_back("model.precision=fp8_mixed");
  question.settings.emplace_back("model.fp8_recipe=tensorwise");
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  EXPECT_TRUE(outcome.any());
  for (const OtherTraining& other : other_trainings(question, subject)) {
    EXPECT_FALSE(other.best) << other.name;
    EXPECT_NE(other.refusal.find("fp8"), std::string::npos) << other.name << ": " << other.refusal;
  }
}

// Settings of fp8 alone leave with it: the move to other precisions can be run.
TEST(FitMoves, LeaveFp8Whole) {
  FitQuestion question = tight("8000000000");
  question.settings.emplace_back("model.precision=fp8_mixed");
  question.settings.emplace_back("model.fp8_recipe=tensorwise");
  const FitSubject subject = fit_subject(question);
  const FitPoints points(subject);
  bool is_there = false;
  for (const FitMove& move : FitMoves(question, subject, points).other_maths(points.as_given())) {
    if (move.point.setup.precision != TrainingPrecision::bf16) continue;
    is_there = true;
    EXPECT_EQ(move.point.setup.fp8_recipe, Fp8Recipe::delayed);
  }
  EXPECT_TRUE(is_there);
}

// Adapters are no answer to a question about all weights, and are told beside it; each as `run` has it.
TEST(OtherTrainings, AreToldByTheirName) {
  FitQuestion question = tight("1500000000");
  question.replays = 30;
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  for (const FitWay& way : outcome.ways)
    for (const std::string& edit : way.row.way.settings) EXPECT_FALSE(edit.starts_with("model.trainable=")) << edit;
  const std::vector<OtherTraining> others = other_trainings(question, subject);
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].name, "LoRA");
  EXPECT_EQ(others[1].name, "QLoRA");
  for (const OtherTraining& other : others) {
    ASSERT_TRUE(other.best) << other.name;
    EXPECT_TRUE(other.best->changes_maths);
    const Scenario scenario = scenario_of(subject.scenario, other.best->row.way.settings);
    EXPECT_TRUE(scenario.training.has_adapters());
    EXPECT_EQ(run(load(scenario)).fingerprint, other.best->row.result.fingerprint);
  }
  question.same_maths = true;
  EXPECT_TRUE(other_trainings(question, subject).empty());
  question = tight("1500000000");
  question.settings.emplace_back("model.trainable=lora");
  const FitSubject adapters = fit_subject(question);
  EXPECT_TRUE(other_trainings(question, adapters).empty());
  // There the base's form is a way, which changes the maths.
  bool quantizes = false;
  const FitPoints points(adapters);
  for (const FitMove& move : FitMoves(question, adapters, points).other_maths(points.as_given())) {
    quantizes |= move.point.setup.trainable == Trainable::qlora;
    EXPECT_TRUE(points.changes_maths(move.point)) << move.name;
  }
  EXPECT_TRUE(quantizes);
}

TEST(FindFit, StopsWithTheBestSoFar) {
  const FitQuestion question = tight("8000000000");
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome =
      find_fit(question, subject, {.progress = [](const std::string&, std::size_t replays) { return replays < 3; }});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_GE(outcome.ways.size(), 1U);
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  EXPECT_TRUE(find_fit(question, subject).stopped);
}

}  // namespace
}  // namespace spillway::studies
