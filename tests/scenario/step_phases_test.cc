// A step that trains on its own answers: its phases' memory to the byte, their sum, and the verdict of the worst.
#include "scenario/step_phases.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "base/short_text.h"
#include "models/spec/model_spec.h"
#include "models/spec/models_beside.h"
#include "models/step/inference_engine.h"
#include "scenario/brief_run.h"
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
  EXPECT_EQ(result.phases[1].peak, held + peak_of(loaded.before_training[0].traces->whole));
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

// Only without the margin: the room that is told is what the margin leaves.
TEST(StepPhases, TightWithoutTheMargin) {
  const LoadedScenario loaded = phased({"model.rollout_sleep=2"});
  const Bytes limit = loaded.capacity - loaded.reserve.taken, margin = loaded.reserve.margin;
  const Bytes wanted = limit - margin / 2 - held_before(loaded.trace);
  const double share =
      static_cast<double>(wanted.count()) / static_cast<double>(loaded.hardware.gpu.memory.value.count());
  const Result result = run(phased({"model.rollout_sleep=2", "model.rollout_memory=" + std::to_string(share)}));
  EXPECT_EQ(result.phases[0].verdict, Verdict::tight);
  EXPECT_EQ(result.verdict(), Verdict::tight);
  EXPECT_GT(result.memory.limit, result.memory.peak_reserved);
  EXPECT_LT(result.memory.limit - result.memory.peak_reserved, margin);
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

// PPO: a value model has weights 2, master weights 4 and moments 8 bytes a parameter of its own, a reward model weights
// alone. Both have a row of the width in place of the head, which in GPT-2 is the embedding's.
TEST(StepPhases, ModelsBeside) {
  const LoadedScenario loaded =
      phased({"model.reference=model", "model.value_model=same", "model.reward_model=same", "model.rollout_sleep=2"});
  const models::ModelSpec trained = models::find_model("gpt2-small");
  const std::int64_t words = models::parameter_count(trained), values = words + trained.hidden;
  EXPECT_EQ(models::parameter_count(models::with_value_head(trained)), values);
  const Bytes held = held_before(loaded.trace);
  EXPECT_EQ(held.count(), 16 * words + 16 * values + 4 * 512 * 8 + 4 * 512 * 8);
  const Result result = run(loaded);
  std::vector<std::string> names;
  Picos sum{};
  for (const auto& phase : result.phases) {
    names.push_back(phase.name);
    sum += phase.time;
    EXPECT_GT(phase.time, Picos(0));
    EXPECT_GE(phase.allocated, held);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"rollout", "reference", "rewards", "values", "value step", "training"}));
  EXPECT_EQ(result.step_time, sum);
  const auto& training = *loaded.before_training.back().traces;
  EXPECT_EQ(result.phases[4].peak, held + peak_of(training.whole));
  // In the training's phase there is that much more than in the same one alone, and what the allocator rounds it up to.
  const Result alone = run(phased({"model.reference=model", "model.rollout_sleep=2"}));
  const std::int64_t more = (result.phases[5].allocated - alone.phases[2].allocated).count();
  EXPECT_GE(more, 16 * values + 2 * 512 * 8);
  EXPECT_LT(more, 16.4 * static_cast<double>(values));
  EXPECT_EQ(result.phases[5].time, alone.phases[2].time);
  EXPECT_EQ(sum_of(result.memory.owners), result.memory.peak_allocated);
}

// Without an engine the answers come from elsewhere; a model of another size has micro-batches of its own.
TEST(StepPhases, AnotherValueModel) {
  const std::vector<std::string> common = {"model.rollout_memory=0", "model.value_model=gpt2-medium"};
  const auto with = [&](const std::string& setting) {
    std::vector<std::string> settings = common;
    settings.push_back(setting);
    return phased(settings);
  };
  const LoadedScenario whole = with("model.value_micro_batch=0"), parts = with("model.value_micro_batch=2");
  EXPECT_EQ(whole.before_training.back().batches, 2);
  EXPECT_EQ(parts.before_training.back().batches, 4);
  EXPECT_EQ(held_before(whole.trace), held_before(parts.trace));
  const Result one = run(whole), other = run(parts);
  ASSERT_EQ(one.phases.size(), 3U);
  EXPECT_GT(one.phases[0].peak, other.phases[0].peak);
  EXPECT_THROW(static_cast<void>(with("model.value_micro_batch=3")), InputError);
  EXPECT_THROW(static_cast<void>(phased({"model.rollout_memory=0", "model.loss=fp32", "model.value_model=same"})),
               InputError);
  EXPECT_THROW(static_cast<void>(phased({"model.value_model=no-such-model"})), InputError);
}

// A step told by some of its micro-batches is the whole one's, and so are the value model's.
TEST(StepPhases, TheSameFolded) {
  const Scenario scenario = parse_scenario(
      R"({"schema": "spillway-scenario", "version": 1, "hardware": {"profile": "h100-80gb-1gpu"},
          "model": {"name": "gpt2-small", "layers": 8, "sequence": 1024, "micro_batch": 2, "gradient_accumulation": 64,
                    "loss": "group", "value_model": "same", "framework": "huggingface"}})",
      "test.json", "/folder", {});
  const BriefRun brief = run_briefly(scenario);
  EXPECT_NE(brief.loaded.options.memory.fold, nullptr);
  const Result whole = run(load(scenario)), &folded = brief.run.result;
  EXPECT_EQ(folded.step_time, whole.step_time);
  EXPECT_EQ(folded.memory.peak_allocated, whole.memory.peak_allocated);
  EXPECT_EQ(folded.memory.peak_reserved, whole.memory.peak_reserved);
  ASSERT_EQ(folded.phases.size(), whole.phases.size());
  for (std::size_t i = 0; i < whole.phases.size(); ++i) EXPECT_EQ(folded.phases[i].time, whole.phases[i].time);
}

// Each stage holds its part of every model, and the rollout stands beside the fullest.
TEST(StepPhases, OverStages) {
  const std::vector<std::string> stages = {"hardware.profile=dgx-h100", "model.pipeline_parallel=2",
                                           "model.gradient_accumulation=4", "model.reference=model",
                                           "model.rollout_sleep=2"};
  const LoadedScenario loaded = phased(stages);
  const Result result = run(loaded);
  ASSERT_EQ(result.phases.size(), 3U);
  EXPECT_EQ(result.phases[0].peak, held_before(loaded.trace) + loaded.engine->taken);
  EXPECT_LE(result.phases[1].peak, held_before(loaded.trace) + peak_of(loaded.before_training[0].traces->whole));
  EXPECT_GT(result.phases[1].peak, held_before(loaded.trace));
  EXPECT_EQ(result.verdict(), Verdict::fits);
}

// DeepSpeed shares the reference out under stage 3, but for what it keeps whole (stage3_param_persistence_threshold),
// and holds it whole under the others.
TEST(StepPhases, ReferenceUnderDeepSpeed) {
  const auto held = [](const char* stage, const char* reference) {
    return held_before(phased({"hardware.profile=dgx-h100", "model.data_parallel=8", "model.framework=deepspeed",
                               std::string("model.zero_stage=") + stage, std::string("model.reference=") + reference})
                           .trace);
  };
  std::int64_t shared = 0, whole = 0;
  for (const models::Parameter& parameter : parameters(models::find_model("gpt2-small"))) {
    const std::int64_t elements = parameter.elements();
    shared += 2 * ((elements + 7) / 8) + (elements <= 100'000 ? 2 * elements : 0);
    whole += 2 * elements;
  }
  const std::int64_t positions = 512 * 8;
  EXPECT_EQ((held("3", "model") - held("3", "none")).count(), shared + positions);
  EXPECT_EQ((held("2", "model") - held("2", "none")).count(), whole + positions);
}

}  // namespace
}  // namespace spillway::scenario
