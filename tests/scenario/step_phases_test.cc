// A step that trains on its own answers: its phases' memory to the byte, their sum, and the verdict of the worst.
#include "scenario/step_phases.h"

#include <gtest/gtest.h>

#include "base/short_text.h"
#include "models/spec/model_spec.h"
#include "models/step/inference_engine.h"
#include "scenario/evaluation.h"
#include "scenario/scenario.h"
#include "sim/replay/peak_owners.h"
#include "sim/replay/verdict_words.h"

namespace spillway::scenario {
namespace {

LoadedScenario phased(const std::vector<std::string>& settings) {
  return load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small",
                                 "sequence": 512, "micro_batch": 4, "gradient_accumulation": 2, "loss": "group",
                                 "prompt_tokens": 128, "rollout_group": 4, "rollout_memory": 0.2,
                                 "framework": "huggingface"},
                                 "hardware": {"profile": "h100-80gb-1gpu"}})",
                             "test.json", "/folder", settings));
}

TEST(StepPhases, SumAndMemory) {
  const LoadedScenario loaded = phased({"model.reference=model", "model.rollout_sleep=2"});
  const Result result = run(loaded);
  ASSERT_EQ(result.phases.size(), 3U);
  Picos sum{};
  for (const auto& phase : result.phases) sum += phase.time;
  EXPECT_EQ(result.step_time, sum);
  EXPECT_FALSE(result.step_time_range.known);  // the engine's rates are assumed
  EXPECT_NEAR(result.tokens_per_second, 2 * 4 * 512 / to_seconds(sum), 1e-6 * result.tokens_per_second);
  // Weights 2, master weights 4, moments 8 and the reference 2 bytes a parameter; the positions of both models, and the
  // first micro-batch's words.
  const Bytes held = held_before(loaded.trace), taken = loaded.engine->taken;
  EXPECT_EQ(held.count(), 16 * models::parameter_count(models::find_model("gpt2-small")) + 2 * 512 * 8 + 4 * 512 * 8);
  EXPECT_EQ(result.phases[0].peak, held + taken);
  EXPECT_EQ(result.phases[1].peak, held + peak_of(loaded.reference->whole));
  // The rollout needs most: the step's memory is its.
  EXPECT_EQ(result.memory.phase, "rollout");
  EXPECT_EQ(result.memory.peak_reserved, result.phases[0].peak);
  EXPECT_EQ(result.memory.peak_allocated, result.phases[0].peak);
  ASSERT_FALSE(result.memory.owners.empty());
  EXPECT_EQ(result.memory.owners.front().name, "inference engine");
  EXPECT_EQ(result.memory.owners.front().bytes, taken);
  EXPECT_EQ(sum_of(result.memory.owners), result.memory.peak_allocated);
  EXPECT_EQ(to_spare(result), short_size(result.memory.limit - held - taken) + " free");
  const Result alone = run(phased({"model.rollout_memory=0", "model.reference=model"}));
  EXPECT_TRUE(alone.phases.empty());
  EXPECT_EQ(result.phases[2].time, alone.step_time);
  EXPECT_EQ(result.phases[2].reserved, alone.memory.peak_reserved);
  EXPECT_EQ(result.phases[2].allocated, alone.memory.peak_allocated);
  EXPECT_EQ(result.verdict(), Verdict::fits);
}

// Awake all the time, the engine is kept free of the training's memory.
TEST(StepPhases, AwakeWhileTraining) {
  const LoadedScenario loaded = phased({});
  const Result awake = run(loaded), asleep = run(phased({"model.rollout_sleep=1"}));
  ASSERT_EQ(awake.phases.size(), 2U);
  EXPECT_EQ(awake.reserve.taken - asleep.reserve.taken, loaded.engine->taken);
  EXPECT_EQ(awake.phases[0].peak, asleep.phases[0].peak);
  EXPECT_EQ(awake.phases[1].peak - awake.memory.peak_reserved, loaded.engine->taken);
}

// The training fits either way; what the engine takes awake does not.
TEST(StepPhases, TheWorstPhaseDecides) {
  const Result result = run(phased({"model.rollout_sleep=2", "model.rollout_memory=0.98"}));
  EXPECT_EQ(result.phases[0].verdict, Verdict::does_not_fit);
  EXPECT_EQ(result.phases[1].verdict, Verdict::fits);
  EXPECT_EQ(result.verdict(), Verdict::does_not_fit);
  EXPECT_EQ(result.memory.short_of, result.phases[0].short_of);
  EXPECT_GT(result.memory.short_of, Bytes(0));
  // Weights that leave no room for an answer.
  const Result empty = run(phased({"model.rollout_sleep=2", "model.rollout_memory=0.001"}));
  EXPECT_EQ(empty.phases[0].verdict, Verdict::does_not_fit);
}

// With adapters the reference is the base, and no weights come to what is held; ZeRO 3 gathers for its forwards too.
TEST(StepPhases, AdaptersAndShares) {
  const LoadedScenario lora = phased({"model.trainable=lora", "model.reference=base"});
  EXPECT_EQ(held_before(lora.trace), held_before(phased({"model.trainable=lora"}).trace));
  EXPECT_GT(run(lora).phases[1].time, Picos(0));
  const Result shared = run(phased({"hardware.profile=dgx-h100", "model.data_parallel=8", "model.zero_stage=3",
                                    "model.reference=model", "model.rollout_parallel=2", "model.rollout_sleep=2"}));
  ASSERT_EQ(shared.phases.size(), 3U);
  EXPECT_GT(shared.phases[1].time, Picos(0));
  EXPECT_EQ(shared.verdict(), Verdict::fits);
}

}  // namespace
}  // namespace spillway::scenario
