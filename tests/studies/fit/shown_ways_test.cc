// Of many ways the few that differ: each shown or folded once, names in the field's terms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "studies/fit/fit_exports.h"
#include "studies/fit/shown_ways.h"
#include "studies/fit/way_names.h"

namespace spillway::studies {
namespace {

FitWay way(std::vector<std::string> settings, double seconds, double gib, std::uint32_t mechanisms,
           const std::string& layout = "1") {
  FitWay one;
  one.row.candidate = {.name = "way", .edits = std::move(settings)};
  one.row.is_done = true;
  one.row.result.step_time = from_seconds(seconds);
  MemoryResult& memory = one.row.result.memory;
  memory.known = true;
  memory.capacity = memory.limit = Bytes(std::int64_t{80} << 30);
  memory.peak_reserved = Bytes(std::llround(gib * 1024 * 1024 * 1024));
  one.mechanisms = mechanisms;
  one.layout = layout;
  return one;
}

FitOutcome outcome_of(std::vector<FitWay> ways) {
  FitOutcome outcome;
  outcome.fitting = ways.size();
  outcome.ways = std::move(ways);
  return outcome;
}

std::vector<std::size_t> numbers(const std::vector<ShownWay>& shown) {
  std::vector<std::size_t> all;
  for (const ShownWay& one : shown) all.push_back(one.way);
  return all;
}

void expect_each_once(const FitOutcome& outcome, const std::vector<ShownWay>& shown) {
  std::multiset<std::size_t> seen;
  for (const ShownWay& one : shown) {
    seen.insert(one.way);
    for (const FoldedWay& folded : one.folded) seen.insert(folded.way);
  }
  EXPECT_EQ(seen.size(), outcome.fitting);
  for (std::size_t i = 0; i < outcome.fitting; ++i) EXPECT_EQ(seen.count(i), 1U) << i;
}

TEST(ShownWays, PartsThatMoveNothingMoreAreFolded) {
  const FitOutcome outcome = outcome_of({way({"a=1"}, 1, 30, 0), way({"a=1", "b=1"}, 1.002, 29.9, 2)});
  const std::vector<ShownWay> shown = shown_ways(outcome);
  EXPECT_EQ(numbers(shown), (std::vector<std::size_t>{0}));
  ASSERT_EQ(shown[0].folded.size(), 1U);
  EXPECT_EQ(shown[0].folded[0].reason, "moves nothing more");
}

TEST(ShownWays, OneOfAClassIsShown) {
  const FitOutcome outcome = outcome_of({way({"a=1", "b=1"}, 1, 40, 1), way({"a=1", "c=1"}, 1.01, 40, 1),
                                         way({"d=1"}, 1.3, 20, 2), way({"e=1", "f=1"}, 1.31, 19.9, 2)});
  const std::vector<ShownWay> shown = shown_ways(outcome);
  EXPECT_EQ(numbers(shown), (std::vector<std::size_t>{0, 2}));
  expect_each_once(outcome, shown);
}

// Slower, fuller and by more mechanisms than another; what has more room stays.
TEST(ShownWays, DominatedOnesAreFolded) {
  const FitOutcome outcome = outcome_of({way({"a=1"}, 1, 40, 1), way({"b=1", "c=1"}, 1.2, 41, 3),
                                         way({"d=1", "e=1"}, 1.5, 10, 5), way({"f=1", "g=1"}, 1.4, 30, 9)});
  const std::vector<ShownWay> shown = shown_ways(outcome);
  EXPECT_EQ(numbers(shown), (std::vector<std::size_t>{0, 2, 3}));
  expect_each_once(outcome, shown);
}

// What a framework launches by its file alone is no worse than what takes code besides. The best such way has a row of
// its own where it is another class, or a tenth slower than the best of its class.
TEST(ShownWays, TheBestWithoutCodeStaysInSight) {
  const auto shown_of = [](double seconds, std::uint32_t mechanisms) {
    FitOutcome outcome = outcome_of(
        {way({"a=1", "b=1"}, 1, 40, 1), way({"c=1", "d=1", "e=1"}, seconds, 41, mechanisms), way({"f=1"}, 1.6, 39, 8)});
    outcome.ways[1].is_plain = true;
    EXPECT_EQ(best_plain(outcome), 1U);
    const std::vector<ShownWay> shown = shown_ways(outcome);
    expect_each_once(outcome, shown);
    return numbers(shown);
  };
  EXPECT_EQ(shown_of(1.2, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(shown_of(1.2, 1), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(shown_of(1.05, 1), (std::vector<std::size_t>{0, 2}));  // a line beside the first
  FitOutcome none = outcome_of({way({"a=1"}, 1, 40, 1), way({"b=1", "c=1"}, 1.2, 41, 3)});
  EXPECT_EQ(best_plain(none), std::nullopt);
  EXPECT_EQ(numbers(shown_ways(none)), (std::vector<std::size_t>{0}));
}

TEST(ShownWays, OtherNumericsComeLast) {
  FitWay narrow = way({"a=1"}, 0.5, 20, 1);
  narrow.changes_maths = true;
  const FitOutcome outcome = outcome_of({way({"b=1"}, 1, 40, 2), narrow});
  const std::vector<ShownWay> shown = shown_ways(outcome);
  EXPECT_EQ(numbers(shown), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(group_of(outcome.ways[1]), FitGroup::numerics);
}

std::vector<std::size_t> order_of(const std::vector<FitWay>& ways) {
  std::vector<RankedRow> rows;
  for (const FitWay& one : ways) rows.push_back({&one.row, group_of(one), one.mechanisms});
  return shown_order(FitGoal::speed, rows);
}

FitWay on_host(FitWay way) {
  way.row.result.host_memory.known = true;
  way.row.result.host_memory.capacity = Bytes(std::int64_t{1} << 40);
  return way;
}

// Within 2 % of the best what is simpler to run comes first: room, then no host, then fewer mechanisms. Beyond, time.
// Many that train the same don't push the best of another group out.
TEST(ShownWays, TheBestOfEachGroupStaysInSight) {
  std::vector<FitWay> ways;
  for (int i = 0; i < 12; ++i) ways.push_back(way({"a=" + std::to_string(i)}, 1 + i, 60 - 4 * i, 1U << i));
  for (const double seconds : {0.8, 0.9}) {
    ways.push_back(way({"n=" + std::to_string(seconds)}, seconds, 70, 1U << 13));
    ways.back().changes_maths = true;
  }
  const FitOutcome outcome = outcome_of(std::move(ways));
  const std::vector<ShownWay> shown = shown_ways(outcome);
  EXPECT_EQ(shown.size(), 9U);
  EXPECT_EQ(shown.back().way, 12U);
  expect_each_once(outcome, shown);
}

TEST(ShownOrder, OfNearlyEqualTimesTheSimplerIsFirst) {
  const std::vector<FitWay> ways = {on_host(way({"a=1"}, 1.000, 40, 1)), way({"b=1"}, 1.015, 40, 3),
                                    way({"c=1"}, 1.018, 40, 1), way({"d=1"}, 1.03, 40, 0),
                                    way({"e=1"}, 1.001, 79.9, 0)};
  EXPECT_EQ(order_of(ways), (std::vector<std::size_t>{2, 1, 0, 4, 3}));
  // Among those that do something else, too.
  std::vector<FitWay> numerics = ways;
  for (FitWay& one : numerics) one.changes_maths = true;
  EXPECT_EQ(order_of(numerics), (std::vector<std::size_t>{2, 1, 0, 4, 3}));
}

// What leaves next to nothing may be the first, but then one with room is shown beside it, whatever their class.
TEST(ShownWays, BesideOneThatLeavesLittleIsOneWithRoom) {
  const FitOutcome outcome =
      outcome_of({way({"a=1"}, 1, 79.9, 1), way({"b=1"}, 1.05, 60, 1), way({"c=1"}, 1.06, 61, 1)});
  EXPECT_TRUE(leaves_little(outcome.ways[0].row.result));
  EXPECT_FALSE(leaves_little(outcome.ways[1].row.result));
  EXPECT_EQ(numbers(shown_ways(outcome)), (std::vector<std::size_t>{0, 1}));
}

// A launch that leaves something open leaves it open for every way: they are told apart as they were replayed.
TEST(ShownWays, InDoubtAreAsReplayed) {
  std::vector<FitWay> ways = {way({"a=1"}, 1, 40, 1), way({"b=1", "c=1"}, 1.2, 41, 3), way({"d=1", "e=1"}, 1.5, 10, 5),
                              way({"f=1", "g=1"}, 1.4, 30, 9)};
  const std::vector<std::size_t> sure = numbers(shown_ways(outcome_of(ways)));
  for (FitWay& one : ways) one.row.result.hangs_on.emplace_back();
  ASSERT_FALSE(ways.front().row.works());
  EXPECT_EQ(numbers(shown_ways(outcome_of(ways))), sure);
}

TEST(ShownWays, WhereNothingFitsTheNearestAre) {
  FitOutcome outcome =
      outcome_of({way({}, 1, 90, 0), way({"a=1"}, 1, 91, 0), way({"b=1"}, 1, 92, 0), way({"c=1"}, 1, 93, 0)});
  outcome.fitting = 0;
  EXPECT_EQ(numbers(shown_ways(outcome)), (std::vector<std::size_t>{0, 1, 2}));
}

// Classes of which none is as good as another: all up to nine, and the best and the roomiest of more.
TEST(ShownWays, FiveToNineOfAsManyClasses) {
  for (std::uint32_t classes = 1; classes <= 14; ++classes) {
    std::vector<FitWay> ways;
    for (std::uint32_t i = 0; i < classes; ++i)
      for (const char* const like : {"", "-too"})  // and one alike of each
        ways.push_back(
            way({"a=" + std::to_string(i) + like}, 1 + 0.1 * i + (*like ? 0.001 : 0), 70 - 2.0 * i, 1U << i));
    const FitOutcome outcome = outcome_of(ways);
    const std::vector<ShownWay> shown = shown_ways(outcome);
    EXPECT_EQ(shown.size(), std::min(classes, 9U));
    EXPECT_EQ(shown.front().way, 0U);
    EXPECT_EQ(shown.back().way, 2U * (classes - 1)) << "the most room";
    expect_each_once(outcome, shown);
  }
}

// Fewer classes than five: other layouts of them that are not near ones; no tight ones, and none to make up numbers.
TEST(ShownWays, OtherLayoutsFillUpToFive) {
  for (int layouts = 1; layouts <= 8; ++layouts) {
    std::vector<FitWay> ways;
    for (int i = 0; i < layouts; ++i)
      ways.push_back(way({"a=" + std::to_string(i)}, 1 + 0.1 * i, 40, 1, std::to_string(i)));
    EXPECT_EQ(shown_ways(outcome_of(ways)).size(), static_cast<std::size_t>(std::min(layouts, 5)));
    for (FitWay& one : ways) one.row.result.step_time = from_seconds(1);
    EXPECT_EQ(shown_ways(outcome_of(ways)).size(), 1U) << "all alike";
  }
}

// A real search: at most nine, each way once, no two alike in step and room.
TEST(ShownWays, OfASearchAreFewAndDiffer) {
  const FitQuestion question{.what = "gpt2-small",
                             .machine = "1xh100",
                             .settings = {"model.layers=6", "model.micro_batch=4", "memory.capacity_bytes=2600000000"},
                             .sequence = 512,
                             .global_batch = 8,
                             .replays = 40};
  const FitSubject subject = fit_subject(question);
  const FitOutcome outcome = find_fit(question, subject);
  ASSERT_GT(outcome.fitting, 9U);
  const std::vector<ShownWay> shown = shown_ways(outcome);
  EXPECT_LE(shown.size(), 9U);
  EXPECT_GE(shown.size(), 3U);
  EXPECT_EQ(shown.front().way, 0U);
  expect_each_once(outcome, shown);
  for (const ShownWay& a : shown)
    for (const ShownWay& b : shown) {
      const FitWay &one = outcome.ways[a.way], &other = outcome.ways[b.way];
      if (a.way >= b.way || group_of(one) != group_of(other)) continue;
      const double step = to_seconds(one.row.result.step_time) / to_seconds(other.row.result.step_time) - 1;
      const Bytes room = one.row.result.memory.peak_reserved - other.row.result.memory.peak_reserved;
      EXPECT_TRUE(std::abs(step) > 0.005 || std::abs(room.count()) > (std::int64_t{1} << 28))
          << one.row.candidate.name << " | " << other.row.candidate.name;
    }
  // As DeepSpeed runs them: replayed under its framework, found again by their edits.
  const FitQuestion asked = asked_by(question, subject, "deepspeed");
  const FitSubject by_deepspeed = fit_subject(asked);
  const FitOutcome found = find_fit(asked, by_deepspeed);
  const FitOutcome launched = as_launched(asked, by_deepspeed, found, "deepspeed", {});
  ASSERT_GT(launched.fitting, 0U);
  const FitWay& best = launched.ways.front();
  const Scenario scenario = scenario_of(by_deepspeed.scenario, best.row.candidate.edits);
  EXPECT_EQ(scenario.training.framework, Framework::deepspeed);
  EXPECT_TRUE(best.row.is_yes());
}

// Of a scenario that says its micro-batches, ways that share them out anew are launched too.
TEST(ShownWays, AsLaunchedKeepsWaysOfOtherMicroBatches) {
  const FitSubject plain = fit_subject({.what = "gpt2-small", .machine = "1xh100", .sequence = 512, .global_batch = 8});
  FitQuestion question{.what = "gpt2-small", .replays = 12};
  question.settings = {"model.layers=4", "model.framework=deepspeed", "model.global_batch=null",
                       "model.gradient_accumulation=8"};
  const FitSubject subject = fit_subject(question, plain.scenario);
  const FitQuestion asked = asked_by(question, subject, "deepspeed");
  const FitSubject by_deepspeed = fit_subject(asked, plain.scenario);
  const FitOutcome found = find_fit(asked, by_deepspeed);
  const std::vector<std::string>& edits = found.ways.front().row.candidate.edits;
  ASSERT_EQ(std::count(edits.begin(), edits.end(), "model.gradient_accumulation=null"), 1);
  const FitOutcome launched = as_launched(asked, by_deepspeed, found, "deepspeed", {});
  EXPECT_EQ(launched.ways.front().row.candidate.edits, edits);
}

TEST(WayNames, AreTheFieldsTerms) {
  TrainingSetup given, setup;
  setup.tensor_parallel = 4;
  setup.context_parallel = 2;
  setup.data_parallel = 2;
  setup.zero_stage = 3;
  setup.optimizer_device = StateDevice::cpu;
  setup.recompute = Recompute::full;
  setup.recompute_every = 2;
  setup.sequence_parallel = true;
  EXPECT_EQ(way_name(setup, given, {}, {}),
            "Tensor parallel 4 x context parallel 2, ZeRO-3, Adam on the CPU, recompute every second layer");
  TrainingSetup replicas;
  replicas.data_parallel = 8;
  EXPECT_EQ(way_name(replicas, given, {"model.data_parallel=8"}, {}), "Data parallel 8");
  EXPECT_EQ(way_name(given, given, {"model.overlap_gradients=false"}, {"offload activations to host memory"}),
            "Offload activations to host memory, gradients reduced after the backward");
  EXPECT_EQ(way_name(given, given, {"model.expert_dispatcher=hybridep", "model.cuda_graphs=full_iteration"}, {}),
            "Tokens by HybridEP, CUDA graphs");
}

}  // namespace
}  // namespace spillway::studies
