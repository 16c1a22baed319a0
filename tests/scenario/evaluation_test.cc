// Evaluations beside the steps of a scenario: their time, and that steps don't change for it.
#include "scenario/evaluation.h"

#include <gtest/gtest.h>

#include "models/step/evaluation_pass.h"
#include "scenario/scenario.h"

namespace spillway::scenario {
namespace {

Scenario scenario(const std::vector<std::string>& settings) {
  return parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small",
                            "sequence": 512, "micro_batch": 4, "gradient_accumulation": 4},
                            "hardware": {"profile": "dgx-h100"}})",
                        "test.json", "/folder", settings);
}

Result run_with(std::vector<std::string> settings) { return run(load(scenario(settings))); }

// Batches that aren't replayed take what one more takes.
TEST(Evaluation, TimeOfManyBatchesFollowsFromFew) {
  for (const std::string stages : {"1", "2", "4"}) {
    const std::vector<std::string> settings = {"model.evaluate_every=50", "model.evaluation_batches=64",
                                               "model.pipeline_parallel=" + stages};
    const LoadedScenario loaded = load(scenario(settings));
    ASSERT_LT(loaded.evaluation->batches, 64);
    const Result few = run(loaded);
    const ScenarioMachine machine(hardware_of(loaded.scenario));
    ReplayOptions options = loaded.options;
    options.memory.allocator = "ideal";
    options.memory.capacity = Bytes(0);
    const Trace all = generate_evaluation(find_model("gpt2-small"), loaded.setup, machine.cost, machine.cluster, 64);
    EXPECT_NEAR(to_seconds(few.evaluation->time) / to_seconds(replay(all, loaded.hardware, options).replayed), 1, 0.01)
        << stages;
  }
}

TEST(Evaluation, IsNoPartOfAStep) {
  const Result plain = run_with({}), with = run_with({"model.evaluate_every=50", "model.evaluation_batches=3"});
  EXPECT_FALSE(plain.evaluation);
  ASSERT_TRUE(with.evaluation);
  EXPECT_EQ(plain.step_time, with.step_time);
  EXPECT_EQ(plain.tokens_per_second, with.tokens_per_second);
  // 50 steps of 4 x 4 x 512 tokens and one evaluation.
  const double seconds = 50 * to_seconds(with.step_time) + to_seconds(with.evaluation->time);
  EXPECT_NEAR(with.evaluation->tokens_per_second, 50 * 16 * 512 / seconds, 1e-6 * 50 * 16 * 512 / seconds);
  EXPECT_NEAR(with.evaluation->time_share, to_seconds(with.evaluation->time) / seconds, 1e-9);
  EXPECT_EQ(with.evaluation->tokens, 3 * 4 * 512);
  // Three forwards of the twelve passes' thirds.
  EXPECT_GT(to_seconds(with.evaluation->time), 0.15 * to_seconds(with.step_time));
  EXPECT_LT(to_seconds(with.evaluation->time), 0.35 * to_seconds(with.step_time));
}

TEST(Evaluation, MayNeedTheMostMemory) {
  const Result plain = run_with({});
  const Result with = run_with({"model.evaluate_every=50", "model.evaluation_micro_batch=64"});
  EXPECT_GT(with.memory.peak_allocated, plain.memory.peak_allocated);
  EXPECT_GT(with.evaluation->peak, Bytes(0));
  const Result kept = run_with({"model.framework=huggingface", "model.evaluate_every=50", "model.evaluation_batches=8",
                                "model.evaluation_keeps=logits"});
  const Result flushed =
      run_with({"model.framework=huggingface", "model.evaluate_every=50", "model.evaluation_batches=8",
                "model.evaluation_keeps=logits", "model.evaluation_flush=1"});
  EXPECT_GT(kept.memory.peak_allocated, flushed.memory.peak_allocated);
}

TEST(Evaluation, PlannedPlacesSayThatTheyLackIt) {
  const Result planned = run_with({"model.evaluate_every=50", "memory.allocator=stalloc"});
  bool found = false;
  for (const std::string& warning : planned.warnings) found = found || warning.find("evaluation") != std::string::npos;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace spillway::scenario
