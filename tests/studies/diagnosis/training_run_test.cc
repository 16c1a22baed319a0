#include "studies/diagnosis/training_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/input_error.h"
#include "planners/offload/drive_life.h"

namespace spillway::studies {
namespace {

std::string bundled(const std::string& name) { return std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/" + name; }

Result with_drive(double rated_years, Picos step, Bytes written) {
  Result result;
  result.step_time = step;
  result.steps.resize(1);
  DriveTraffic traffic;
  traffic.name = traffic.set = "scratch";
  traffic.written = written * 8;
  traffic.gpus = 8;
  traffic.life = DriveLife{.years = 2 * rated_years, .low_years = rated_years, .high_years = 3 * rated_years};
  result.drives = {traffic};
  return result;
}

TEST(TrainingRun, IsSoManyStepsAndWhatComesBetween) {
  LoadedScenario loaded;
  loaded.scenario.model = "a model";
  loaded.options.tokens_per_step = 1'000;
  Result result = with_drive(1, from_seconds(2), Bytes(std::int64_t{1} << 30));
  result.memory.first_driver_time = from_seconds(1);
  result.evaluation = EvaluationResult{.time = from_seconds(10), .every_steps = 400};
  result.power = PowerResult{.joules = 50};
  const TrainingRun run = training_run(loaded, result, 1'000);
  EXPECT_EQ(run.evaluations, 2);
  EXPECT_DOUBLE_EQ(run.seconds, 2'000 + 1 + 20);
  EXPECT_DOUBLE_EQ(*run.tokens, 1e6);
  EXPECT_DOUBLE_EQ(*run.joules, 50'000.0 * static_cast<double>(run.gpus));
  ASSERT_EQ(run.drives.size(), 1U);
  EXPECT_DOUBLE_EQ(run.drives[0].written_bytes, 8e3 * 1024 * 1024 * 1024);
}

// The life that `run` prints is used up after as many steps as fit into it, evaluations or not.
TEST(TrainingRun, DrivesWearByTheirLife) {
  constexpr double year = 365 * 86'400.0;
  const Result result = with_drive(0.5, from_seconds(10), Bytes(std::int64_t{1} << 30));
  const auto last = static_cast<std::int64_t>(std::floor(0.5 * year / 10));
  const TrainingRun before = training_run({}, result, last), behind = training_run({}, result, last + 1);
  EXPECT_EQ(before.drives[0].steps, last);
  EXPECT_FALSE(before.wears_out());
  EXPECT_TRUE(behind.wears_out());
  EXPECT_NEAR(*behind.drives[0].expected_share, 0.5, 1e-6);
}

// The bound that verdicts go by is the scenario's.
TEST(TrainingRun, WearIsJudgedByTheBoundAskedFor) {
  const Result result = with_drive(0.5, from_seconds(10), Bytes(std::int64_t{1} << 30));
  const std::int64_t steps = 3 * *training_run({}, result, 1).drives[0].steps / 2;
  EXPECT_TRUE(training_run({}, result, steps).wears_out());
  LoadedScenario expected;
  expected.scenario.offload.demands.bound = planners::LifeBound::expected;
  EXPECT_FALSE(training_run(expected, result, steps).wears_out());
}

TEST(TrainingRun, WhatIsNotRatedIsNotKnownToLast) {
  Result result = with_drive(1, from_seconds(1), Bytes(std::int64_t{1} << 30));
  result.drives[0].life.reset();
  EXPECT_FALSE(training_run({}, result, 5).drives[0].share);
  EXPECT_FALSE(training_run({}, result, 5).is_life_known());
  result.drives[0].written = Bytes(0);
  EXPECT_TRUE(training_run({}, result, 5).drives.empty());
  EXPECT_TRUE(training_run({}, result, 5).is_life_known());
}

TEST(TrainingRun, TokensAreWholeSteps) {
  LoadedScenario loaded;
  EXPECT_THROW((void)steps_for_tokens(loaded, 1e9, "--tokens"), InputError);
  loaded.options.tokens_per_step = 4'096;
  EXPECT_EQ(steps_for_tokens(loaded, 4'096, "--tokens"), 1);
  EXPECT_EQ(steps_for_tokens(loaded, 4'097, "--tokens"), 2);
  for (const double bad : {0.0, -1.0, std::nan(""), 1e30})
    EXPECT_THROW((void)steps_for_tokens(loaded, bad, "--tokens"), InputError) << bad;
}

// Of a real step that offloads: the life at the pace of the steps alone is the result's.
TEST(TrainingRun, AgreesWithTheStepsOwnLife) {
  const LoadedScenario loaded = load(load_scenario(bundled("gui/scenarios/wears-out-its-drives.json")));
  const Result result = scenario::run(loaded);
  const TrainingRun run = training_run(loaded, result, 10'000);
  ASSERT_FALSE(run.drives.empty());
  const double years = 1e4 * to_seconds(result.step_time) / (365 * 86'400.0);
  EXPECT_NEAR(*run.drives[0].share * planners::shortest_rated_years(result), years, 1e-9 * years);
  EXPECT_NEAR(*run.drives[0].expected_share * planners::shortest_life_years(result), years, 1e-9 * years);
}

}  // namespace
}  // namespace spillway::studies
