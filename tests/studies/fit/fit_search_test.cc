// The search for ways that fit: never worse than what other commands find, and every figure a replay's.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <span>

#include "base/stop.h"
#include "planners/offload/hybrid_search.h"
#include "planners/technique/technique_table.h"
#include "scenario/evaluator.h"
#include "studies/fit/fit_exports.h"
#include "studies/fit/fit_knobs.h"
#include "studies/fit/fit_search.h"
#include "studies/fit/other_training.h"
#include "studies/sweep/layout_sweep.h"
#include "tests/test_size.h"

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

double seconds(const Row& row) { return to_seconds(row.result.step_time); }

// Of all that fit, whoever can run it: what people can run stands first.
const Row& fastest_of(const FitOutcome& outcome) {
  const Row* best = nullptr;
  for (const FitWay& way : outcome.ways)
    if (way.row.works() && (best == nullptr || way.row.result.step_time < best->result.step_time)) best = &way.row;
  return *best;
}

TEST(FindFit, IsNeverWorseThanRunAndOffloadPlans) {
  for (const char* bytes : {"8000000000", "2600000000"}) {
    FitQuestion question = tight(bytes);
    question.research = true;
    const FitSubject subject = fit_subject(question);
    const FitOutcome outcome = find_fit(question, subject);
    ASSERT_TRUE(outcome.any()) << bytes;
    const Row& best = fastest_of(outcome);
    // As given, and under each technique by itself.
    std::vector<Candidate> ways = {{"as given", {}}};
    for (const TechniqueWay* way : technique_ways())
      if (way->settings != std::vector<std::string>{"memory.allocator=ideal"})
        ways.push_back({way->name, way->settings});
    for (const Row& row : evaluate(subject.scenario, ways))
      if (row.works()) {
        EXPECT_LE(seconds(best), 1.0025 * seconds(row)) << row.candidate.name;
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
  const Row& best = outcome.ways.front().row;
  std::string text = subject.scenario.text;
  for (const std::string& setting : best.candidate.edits) text = with_setting(text, setting);
  const Result alone = run(load(parse_scenario(text, "best.json", "")));
  EXPECT_EQ(alone.fingerprint, best.result.fingerprint);
  EXPECT_EQ(alone.step_time, best.result.step_time);
  EXPECT_EQ(alone.memory.peak_reserved, best.result.memory.peak_reserved);
  // Ranked: those that fit first, what people can run and train alike before all else, by the goal within a quarter of
  // a per cent; no way twice.
  std::set<std::vector<std::string>> seen;
  const auto group = [](const FitWay& way) {
    return way.carrier == Carrier::nobody ? 3 : way.changes_maths ? 2 : way.carrier == Carrier::planner ? 1 : 0;
  };
  for (std::size_t i = 0; i < outcome.ways.size(); ++i) {
    const Row& row = outcome.ways[i].row;
    EXPECT_TRUE(seen.insert(row.candidate.edits).second) << row.candidate.name;
    EXPECT_EQ(row.is_yes(), i < outcome.fitting);
    if (i == 0 || i >= outcome.fitting) continue;
    const FitWay& before = outcome.ways[i - 1];
    EXPECT_LE(group(before), group(outcome.ways[i]));
    if (group(before) != group(outcome.ways[i]) || before.row.works() != row.works()) continue;
    EXPECT_LE(seconds(before.row), 1.005 * seconds(row));
  }
  for (const FitAblation& each : outcome.worth) {
    EXPECT_FALSE(outcome.ways[each.way].row.works() && 1.005 * seconds(outcome.ways[each.way].row) < seconds(best));
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
      for (const std::string& setting : way.row.candidate.edits) edited = with_setting(edited, setting);
      EXPECT_EQ(run(load(parse_scenario(edited, "own.json", ""))).step_time, way.row.result.step_time)
          << way.row.candidate.name;
      other_micro_batch += edited.find("micro_batch\": 8") == std::string::npos ? 1 : 0;
    }
    EXPECT_GT(other_micro_batch, 0);
  }
}

// What an experienced person tries first, written down by hand: the search is beaten by none of it.
struct Asked {
  const char *model, *machine;
  std::int64_t sequence, batch;
  std::vector<std::string> settings = {};
  std::int64_t experts_over = 1;  // GPUs
};
std::vector<std::vector<std::string>> recipes(const Asked& asked, std::int64_t gpus, std::int64_t in_machine) {
  const auto layout = [&](std::int64_t t, std::int64_t c, std::int64_t p, int zero) {
    const std::int64_t d = gpus / t / c / p;
    return std::vector<std::string>{fmt::format("model.tensor_parallel={}", t),
                                    fmt::format("model.sequence_parallel={}", t > 1),
                                    fmt::format("model.context_parallel={}", c),
                                    fmt::format("model.pipeline_parallel={}", p),
                                    fmt::format("model.data_parallel={}", d),
                                    fmt::format("model.expert_parallel={}", std::min(asked.experts_over, d * c)),
                                    fmt::format("model.zero_stage={}", d * c > 1 ? zero : 0)};
  };
  std::vector<std::vector<std::string>> layouts;
  if (gpus == 1)
    layouts = {layout(1, 1, 1, 0)};
  else
    layouts = {layout(1, 1, 1, 3), layout(in_machine, 1, 1, 1), layout(in_machine / 2, 2, 1, 3),
               layout(in_machine / 2, 1, 1, 3), layout(in_machine, 1, gpus / in_machine, 1)};
  if (gpus > 64)
    for (const std::int64_t p : {7, 8, 14, 16})
      if (gpus % (in_machine * p) == 0) layouts.push_back(layout(in_machine, 1, p, 1));
  if (gpus > 64 && asked.experts_over > 1) layouts.push_back(layout(1, 1, 16, 1));
  const std::vector<std::vector<std::string>> edits = {
      {},
      {"model.recompute=full"},
      {"model.recompute=full", "model.recompute_every=2"},
      {"model.optimizer_device=cpu", "model.loss=fused"},
      {"model.optimizer_device=cpu", "model.recompute=full", "model.loss=fused"}};
  std::vector<std::vector<std::string>> all;
  for (const auto& one : layouts)
    for (const auto& more : edits) {
      all.push_back(one);
      all.back().insert(all.back().end(), more.begin(), more.end());
    }
  return all;
}

TEST(FindFit, IsNotBeatenByRecipes) {
  const std::vector<Asked> all = {{"llama-2-7b", "4xa100-40gb", 2048, 32},
                                  {"llama-3-70b", "8xh100", 8192, 64},
                                  {"llama-3-70b", "16xh100", 8192, 64},
                                  {"llama-3-8b", "4xh100", 32768, 16},
                                  {"llama-3-8b", "8xh100", 131072, 8},
                                  {"qwen2.5-7b", "2xrtx-4090+ram=256GiB", 2048, 64},
                                  {"llama-2-13b", "8xa100-40gb", 4096, 64},
                                  {"mixtral-8x7b", "8xb200", 8192, 64, {}, 8},
                                  {"qwen3-30b-a3b", "8xh100", 4096, 64, {}, 8},
                                  {"llama-3-8b", "1xrtx-4090", 4096, 16, {"model.trainable=lora"}},
                                  {"llama-3-70b", "1xh100", 4096, 16, {"model.trainable=qlora"}},
                                  {"llama-3.1-405b", "256xh100", 8192, 512},
                                  {"deepseek-v3", "256xh100", 4096, 1024, {}, 8}};
  const std::size_t asked = test::is_full_size() ? all.size() : 1;
  for (const Asked& one : std::span(all).first(asked)) {
    SCOPED_TRACE(fmt::format("{} on {}", one.model, one.machine));
    const FitQuestion question{.what = one.model,
                               .machine = one.machine,
                               .settings = one.settings,
                               .same_maths = true,
                               .sequence = one.sequence,
                               .global_batch = one.batch};
    const FitSubject subject = fit_subject(question);
    const FitOutcome outcome = find_fit(question, subject);
    ASSERT_TRUE(outcome.any());
    std::vector<Candidate> ways;
    for (auto& settings : recipes(one, subject.gpus, std::min(subject.gpus, subject.hardware.gpu_count)))
      ways.push_back({fmt::format("{}", fmt::join(settings, " ")), settings});
    std::size_t ran = 0;
    for (const Row& row : evaluate(subject.scenario, ways)) {
      ran += row.ran() ? 1 : 0;
      if (row.works()) {
        EXPECT_LE(seconds(fastest_of(outcome)), 1.01 * seconds(row)) << row.candidate.name;
      }
    }
    EXPECT_GT(2 * ran, ways.size()) << "recipes that can't be run compare nothing";
  }
}

// Nor by any single edit of its answer, of all keys that leave the question as it is.
TEST(FindFit, NoSingleEditOfItsAnswerIsBetter) {
  FitQuestion question{
      .what = "gpt2-medium", .machine = "8xa100", .same_maths = true, .sequence = 1024, .global_batch = 32};
  question.settings = {"memory.capacity_bytes=9000000000"};
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  ASSERT_TRUE(outcome.any());
  EXPECT_FALSE(outcome.exhausted);
  const Row& best = outcome.ways.front().row;
  std::vector<Candidate> ways;
  for (const std::string& edit : knob_settings(scenario_of(subject.scenario, best.candidate.edits).training, 24)) {
    ways.push_back({edit, best.candidate.edits});
    ways.back().edits.push_back(edit);
  }
  EXPECT_GT(ways.size(), 8U);
  for (const Row& row : evaluate(subject.scenario, ways))
    if (row.works()) {
      EXPECT_LE(seconds(best), 1.01 * seconds(row)) << row.candidate.name;
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
    EXPECT_EQ(a.ways[i].row.candidate.edits, b.ways[i].row.candidate.edits);
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
    LayoutSpace space;
    space.gpus = 8;
    space.tensor_parallel = space.pipeline_parallel = {1, 2, 4, 8};
    space.micro_batch = {1, 2, 4};
    space.settings = {std::string("model.recompute=") + recompute};
    SweepStore store;
    const SweepOutcome layouts = run_sweep(layout_sweep(subject.scenario.text, "layouts.json", "", space), {}, store);
    if (const SweepRow* fastest = fastest_layout(layouts)) {
      EXPECT_LE(seconds(outcome.ways.front().row), 1.0025 * fastest->replayed.step_seconds) << recompute;
    }
  }
}

// What no single edit of a layout that fits leads to: sequences split in eight hold too much under the plain loss, and
// under the fused one in the blocks of PyTorch's allocator; under both edits they are the fastest.
TEST(FindFit, LooksBeyondLayoutsThatFitAsTheyAre) {
  FitQuestion question{
      .what = "llama-3-8b", .machine = "8xh100", .same_maths = true, .sequence = 131072, .global_batch = 8};
  question.settings = {"model.layers=6", "memory.capacity_bytes=41600000000"};
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  ASSERT_TRUE(outcome.any());
  EXPECT_FALSE(outcome.exhausted);
  const std::vector<std::string> layout = {"model.context_parallel=8", "model.data_parallel=1", "model.zero_stage=1"};
  std::vector<Candidate> ways = {{"layout", layout}, {"lean", layout}, {"lean and packed", layout}};
  for (const std::size_t i : {1U, 2U}) ways[i].edits.emplace_back("model.loss=fused");
  ways[2].edits.emplace_back("memory.allocator=torch-expandable");
  const std::vector<Row> rows = evaluate(subject.scenario, ways);
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
  const Row& nearest = outcome.ways.front().row;
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
  const Row fast = best_for(FitGoal::speed), small = best_for(FitGoal::memory), few = best_for(FitGoal::change),
            lasting = best_for(FitGoal::life);
  EXPECT_LE(small.result.memory.peak_reserved, fast.result.memory.peak_reserved);
  EXPECT_LE(few.candidate.edits.size(), fast.candidate.edits.size());
  EXPECT_EQ(few.candidate.edits.size(), 1U);
  EXPECT_FALSE(lasting.life_years());
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

// A search that ended early is no no.
TEST(OtherTrainings, SayWhetherTheirSearchEnded) {
  for (const bool is_whole : {true, false}) {
    FitQuestion question = tight("20000000");
    question.work = is_whole ? 1'000'000 : 1;
    const std::vector<OtherTraining> others = other_trainings(question, fit_subject(question));
    ASSERT_EQ(others.size(), 2U);
    for (const OtherTraining& other : others) {
      EXPECT_FALSE(other.best) << other.name;
      EXPECT_EQ(other.ended_early, !is_whole) << other.name;
    }
  }
}

// Adapters are no answer to a question about all weights, and are told beside it; each as `run` has it.
TEST(OtherTrainings, AreToldByTheirName) {
  FitQuestion question = tight("1500000000");
  question.replays = 30;
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  for (const FitWay& way : outcome.ways)
    for (const std::string& edit : way.row.candidate.edits) EXPECT_FALSE(edit.starts_with("model.trainable=")) << edit;
  const std::vector<OtherTraining> others = other_trainings(question, subject);
  ASSERT_EQ(others.size(), 2U);
  EXPECT_EQ(others[0].name, "LoRA");
  EXPECT_EQ(others[1].name, "QLoRA");
  for (const OtherTraining& other : others) {
    ASSERT_TRUE(other.best) << other.name;
    EXPECT_TRUE(other.best->changes_maths);
    const Scenario scenario = scenario_of(subject.scenario, other.best->row.candidate.edits);
    EXPECT_TRUE(scenario.training.has_adapters());
    EXPECT_EQ(run(load(scenario)).fingerprint, other.best->row.result.fingerprint);
  }
  // As a framework launches them; torchtitan trains all weights.
  for (const OtherTraining& other : other_trainings(question, subject, {}, "torchtitan"))
    EXPECT_FALSE(other.best) << other.name;
  question = asked_by(question, subject, "torch");
  const FitSubject asked = fit_subject(question);
  for (const OtherTraining& other : other_trainings(question, asked, {}, "torch")) {
    ASSERT_TRUE(other.best) << other.name;
    const std::vector<std::string>& edits = other.best->row.candidate.edits;
    const std::vector<std::string> by = launched_by(scenario_of(asked.scenario, edits), edits);
    EXPECT_TRUE(
        std::any_of(by.begin(), by.end(),
                    [](const std::string& one) { return one.starts_with("torch") && !one.starts_with("torchtitan"); }))
        << other.name << ": " << fmt::format("{}", fmt::join(edits, " "));
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
