// No plan is worse than a setting: what `plan offload`, `plan recompute` and `capacity` answer against a run of every
// named way and of every pair of recomputation and offloading.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "planners/technique/technique_table.h"
#include "scenario/evaluator.h"
#include "sim/replay/order_plan.h"
#include "studies/capacity/capacity.h"
#include "studies/offload/best_offload.h"
#include "tests/test_size.h"

namespace spillway::studies {
namespace {

struct Way {
  std::string name;
  std::vector<std::string> settings;
  bool recomputes_alone = false;
};

// Of activations and state; the generator's, the planners', and both.
std::vector<Way> named_ways(bool with_mix) {
  std::vector<Way> made, planned, all;
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways) {
      const bool is_mix = row.name == hybrid_word;
      if (row.make == nullptr && row.part == PlanPart::fates) made.push_back({way.name, way.settings, true});
      if (row.make == nullptr && row.part == PlanPart::none && row.moves_state)
        made.push_back({way.name, way.settings});
      if (row.make != nullptr && row.part == PlanPart::fates && (!is_mix || with_mix))
        planned.push_back({way.name, way.settings});
    }
  all = made;
  for (const Way& way : planned) {
    all.push_back(way);
    for (const Way& on : made) {
      Way both{on.name + "+" + way.name, on.settings};
      both.settings.insert(both.settings.end(), way.settings.begin(), way.settings.end());
      all.push_back(both);
    }
  }
  return all;
}

std::string text_of(std::mt19937_64& random) {
  const auto one_of = [&random](std::initializer_list<int> values) {
    return std::to_string(*(values.begin() + random() % values.size()));
  };
  const bool splits = random() % 2 == 0;
  const int stages = random() % 3 == 0 ? 2 : 1;
  std::string text = R"({"schema": "spillway-scenario", "version": 1, "model": {"name": ")";
  text += random() % 3 == 0 ? "tinyllama-1.1b" : random() % 2 == 0 ? "gpt2-medium" : "gpt2-small";
  text += R"(", "layers": )";
  text += std::to_string(stages * (1 + static_cast<int>(random() % 2)));
  text += R"(, "sequence": )" + one_of({256, 512, 1024}) + R"(, "micro_batch": )" + one_of({2, 4, 8});
  text += R"(, "gradient_accumulation": )" + one_of({1, 2}) + R"(, "data_parallel": )" + one_of({1, 1, 2});
  text += R"(, "pipeline_parallel": )" + std::to_string(stages);
  if (stages > 1) text += random() % 2 == 0 ? R"(, "pipeline_schedule": "gpipe")" : R"(, "pipeline_schedule": "1f1b")";
  if (splits) text += R"(, "tensor_parallel": 2)";
  if (splits && random() % 4 != 0) text += R"(, "sequence_parallel": true)";
  if (random() % 3 == 0) text += R"(, "flash_attention": false)";
  text += R"(}, "offload": {"least_elements": 1000}, "hardware": {"profile": ")";
  return text + (random() % 2 == 0 ? "dgx-h100" : "dgx-a100") + R"("}})";
}

struct Case {
  std::string text;
  Bytes capacity{};
  [[nodiscard]] std::vector<std::string> limited(std::span<const std::string> more = {}) const {
    std::vector<std::string> all = {"memory.capacity_bytes=" + std::to_string(capacity.count())};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] LoadedScenario loaded(std::span<const std::string> more = {}) const {
    return load(parse_scenario(text, "test", "", limited(more)));
  }
};

// From less than full recomputation takes, where state must leave, up to what keeping all takes.
Case random_case(std::mt19937_64& random) {
  Case made{text_of(random), Bytes(std::int64_t{1} << 40)};
  const std::vector<std::string> full = {"model.recompute=full"};
  const Bytes most = run(made.loaded()).memory.peak_allocated, least = run(made.loaded(full)).memory.peak_allocated;
  const double share = static_cast<double>(random() % 100) / 100;
  const auto part = [share](Bytes of) {
    return Bytes(static_cast<std::int64_t>(share * static_cast<double>(of.count())));
  };
  made.capacity = random() % 3 == 0 ? least / 2 + part(least / 2) : least + part(most - least);
  return made;
}

// The fastest run that fits.
struct Fastest {
  std::optional<Picos> time;
  std::string name;
  void note(const std::string& way, const Result& result) {
    if (!result.fits() || !result.drives_refuse.empty() || (time && *time <= result.step_time)) return;
    time = result.step_time;
    name = way;
  }
};

void expect_capacity(const Case& one, const Fastest& fastest, int number) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("spillway-never-worse-" + std::to_string(number) + ".json")).string();
  std::ofstream(path) << one.text;
  CapacityFlags flags;
  flags.said.axis = "memory";
  flags.planned = true;
  flags.said.from = flags.said.to = one.capacity.count();
  const CapacityOutcome outcome = find_capacity(read_capacity_request(path, {}, flags));
  std::filesystem::remove(path);
  ASSERT_TRUE(outcome.best) << fastest.name;
  const CapacityTrial& best = *outcome.answers[*outcome.best].best;
  EXPECT_LE(best.row.result.step_time, *fastest.time) << fastest.name;
  // Its settings are a run that does the same.
  std::vector<std::string> settings = best.row.candidate.edits;
  EXPECT_EQ(run(load(parse_scenario(one.text, "test", "", settings))).step_time, best.row.result.step_time);
}

// Of all cases of the program.
struct Tally {
  int cases = 0, fitting = 0, by_settings = 0;
  std::map<std::string, int> winners;
};

// A batch of cases, each of a seed of its own: --gtest_filter runs some of them.
class NeverWorse : public testing::TestWithParam<int> {
 protected:
  static constexpr int of_batch = 5;

  static void TearDownTestSuite() {
    EXPECT_GT(tally().fitting, 0);
    if (tally().cases < 2 * of_batch) return;  // too few for shares
    EXPECT_GT(tally().fitting, tally().cases / 3);
    EXPECT_GE(tally().winners.size(), 3U);
    EXPECT_GT(tally().by_settings, 0);
  }
  static Tally& tally() {
    static Tally all;
    return all;
  }

  static void expect_offload(const Case& one, const Fastest& any, const BestOffload& best) {
    ASSERT_TRUE(best.outcome.best.fits()) << any.name << " fits";
    ASSERT_LE(best.outcome.best.result.step_time, *any.time) << any.name;
    std::vector<std::string> with = best.settings;
    for (const std::string& setting : settings_of(best.outcome.best)) with.push_back(setting);
    if (!settings_of(best.outcome.best).empty()) {
      ASSERT_EQ(run(one.loaded(with)).step_time, best.outcome.best.result.step_time);
    }
    ++tally().fitting;
    tally().by_settings += best.settings.empty() ? 0 : 1;
    ++tally().winners[best.outcome.best.name];
  }

  // `is_thorough`: the searched mix and `capacity`, too.
  static void expect_never_worse(const Case& one, int number, bool is_thorough) {
    Fastest any, recomputing;
    for (const Way& way : named_ways(is_thorough)) {
      try {
        const Result result = run(one.loaded(way.settings));
        any.note(way.name, result);
        if (way.recomputes_alone) recomputing.note(way.name, result);
      } catch (const InputError&) {  // not of this step
      }
    }
    const LoadedScenario loaded = one.loaded();
    const ScenarioWith with = [&one](std::span<const std::string> more) {
      return parse_scenario(one.text, "test", "", one.limited(more));
    };
    HybridSettings settings;
    settings.runtime = loaded.scenario.offload;
    if (!is_thorough) settings.replays = 12;
    ++tally().cases;
    if (any.time) expect_offload(one, any, best_offload(loaded, with, settings));
    if (recomputing.time) {
      const BestRecompute again = best_recompute(loaded, with, {});
      ASSERT_TRUE(again.outcome.best.fits()) << recomputing.name << " fits";
      ASSERT_LE(again.outcome.best.result.step_time, *recomputing.time) << recomputing.name;
    }
    if (any.time && is_thorough) expect_capacity(one, any, number);
  }
};

TEST_P(NeverWorse, ThanASetting) {
  for (int round = GetParam() * of_batch; round < (GetParam() + 1) * of_batch; ++round) {
    SCOPED_TRACE(round);
    std::mt19937_64 random(static_cast<std::uint64_t>(round));
    const Case one = random_case(random);
    SCOPED_TRACE(one.text + " " + std::to_string(one.capacity.count()));
    expect_never_worse(one, round, round % 5 == 4);
  }
}

// Of 24 layers and 48 micro-batches; without limit bytes as much as the GPU has.
struct ManyMicroBatches {
  explicit ManyMicroBatches(std::vector<std::string> more) : settings(std::move(more)) {}
  [[nodiscard]] Scenario with(std::span<const std::string> more = {}) const {
    std::vector<std::string> all = settings;
    all.insert(all.end(), more.begin(), more.end());
    return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-medium",
        "sequence": 256, "micro_batch": 4, "gradient_accumulation": 48, "data_parallel": 2},
        "hardware": {"profile": "dgx-h100"}})",
                          "test", "", all);
  }
  [[nodiscard]] BestOffload best() const {
    const LoadedScenario loaded = load(with());
    return best_offload(
        loaded, [this](std::span<const std::string> more) { return with(more); }, HybridSettings());
  }
  std::vector<std::string> settings;
};

TEST(BestOffload, OfManyMicroBatchesKeepingAllIsTheRun) {
  const ManyMicroBatches step({});
  const BestOffload best = step.best();
  const Result whole = run(load(step.with()));
  EXPECT_EQ(best.outcome.best.name, "keep");
  EXPECT_EQ(best.outcome.best.result.fingerprint, whole.fingerprint);
  EXPECT_EQ(best.outcome.best.result.step_time, whole.step_time);
  EXPECT_EQ(best.outcome.best.result.memory.peak_reserved, whole.memory.peak_reserved);
  EXPECT_GT(best.outcome.kept, Bytes(0));
}

TEST(BestOffload, OfManyMicroBatchesAPlanSoughtOnFewIsReplayedWhole) {
  const std::vector<std::string> full = {"model.recompute=full", "memory.capacity_bytes=1000000000000"};
  const ManyMicroBatches free({"memory.capacity_bytes=1000000000000"});
  const Result keep = run(load(free.with())), again = run(load(free.with(full)));
  const Bytes limit = again.memory.peak_reserved + (keep.memory.peak_reserved - again.memory.peak_reserved) / 2;
  const ManyMicroBatches step(
      {"memory.capacity_bytes=" + std::to_string(limit.count()), "memory.reserve=0", "model.optimizer_device=gpu"});
  ASSERT_FALSE(run(load(step.with())).fits());
  const BestOffload best = step.best();
  ASSERT_TRUE(best.outcome.best.fits());
  ASSERT_FALSE(best.outcome.best.plan.empty());
  ASSERT_NE(best.loaded, nullptr);
  EXPECT_EQ(best.loaded->setup.gradient_accumulation, 48);
  OffloadPlan fates = best.outcome.best.plan;
  fates.digest = digest_of_works(best.loaded->trace);
  const Result followed = Evaluator(*best.loaded).run({.fates = fates}).result;
  EXPECT_EQ(followed.step_time, best.outcome.best.result.step_time);
  EXPECT_EQ(followed.memory.peak_reserved, best.outcome.best.result.memory.peak_reserved);
  for (const VariantCase& one : best.variants) {
    if (one.loaded == nullptr || !one.result.fits()) continue;
    EXPECT_LE(best.outcome.best.result.step_time, one.result.step_time) << one.candidate.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, NeverWorse, testing::Range(0, test::cases(1, 100)));

}  // namespace
}  // namespace spillway::studies
