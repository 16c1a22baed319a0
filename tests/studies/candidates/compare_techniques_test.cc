// Techniques side by side: every row is what a run of the scenario with its settings gives.
#include "studies/candidates/compare_techniques.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/input_error.h"
#include "models/pipeline/named_schedules.h"
#include "planners/offload/ssdtrain.h"
#include "planners/technique/technique_table.h"
#include "tests/test_size.h"

namespace spillway::studies {
namespace {

constexpr const char* text = R"({"schema": "spillway-scenario", "version": 1,
  "model": {"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 1, "gradient_accumulation": 4,
            "pipeline_parallel": 2, "recompute": "full"},
  "hardware": {"profile": "dgx-a100-40gb"}, "memory": {"allocator": "gmlake"},
  "offload": {"least_elements": 10000, "drives": "samsung-990-pro-2tb", "technique": "ssdtrain"}})";
const BaseScenario small{text, "small.json", ""};

TEST(CompareTechniques, RowsAreRuns) {
  const std::vector<Candidate> ways = technique_candidates(small);
  const TechniqueComparison comparison = compare_techniques(small, ways);
  EXPECT_TRUE(comparison.is_whole);
  ASSERT_EQ(comparison.rows.size(), ways.size());
  EXPECT_GE(ways.size(), 25U);
  std::size_t ran = 0;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    SCOPED_TRACE(ways[i].name);
    const TechniqueRow& each = comparison.rows[i];
    EXPECT_EQ(each.row.candidate.name, ways[i].name);
    if (!each.row.ran()) continue;
    ++ran;
    const Result result = run(load(scenario_of(small, ways[i].edits)));
    EXPECT_EQ(each.row.result.step_time, result.step_time);
    EXPECT_EQ(each.row.result.memory.peak_reserved, result.memory.peak_reserved);
    EXPECT_EQ(each.row.result.fingerprint, result.fingerprint);
  }
  EXPECT_EQ(ran, ways.size());
  EXPECT_EQ(comparison.rows.front().row.candidate.name, plain_technique);
  EXPECT_EQ(comparison.rows.front().against_plain, 1);
  // The plain step is that: what the scenario itself says of techniques is out.
  EXPECT_FALSE(comparison.rows.front().row.result.offload);
  EXPECT_EQ(comparison.rows.front().row.result.memory.allocator, "torch");
}

// Weights on the host hold only beside the optimizer there: the plain step takes both back.
TEST(CompareTechniques, StatesOnTheHostAreTakenBack) {
  const BaseScenario step{R"({"schema": "spillway-scenario", "version": 1,
    "model": {"name": "gpt2-small", "layers": 2, "sequence": 128, "data_parallel": 2, "zero_stage": 3,
              "optimizer_device": "cpu", "weight_device": "cpu"},
    "hardware": {"profile": "dgx-a100-40gb"}})",
                          "step.json", ""};
  const std::vector<std::string> names = {"full"};
  const TechniqueComparison comparison = compare_techniques(step, technique_candidates(step, names));
  ASSERT_EQ(comparison.rows.size(), 2U);
  for (const TechniqueRow& each : comparison.rows) EXPECT_EQ(each.row.error, "") << each.row.candidate.name;
  EXPECT_NE(taken_out(step).find("model.weight_device=cpu"), std::string::npos);
}

// Every technique on every kind of step: it runs, and then as `run` does, or it is refused with a reason. A plan that
// can't run, or one told unsound, is neither.
struct Kind {
  const char* name;
  const char* model;
  const char* schedule = "";  // set on top of every way that has none of its own
  bool is_large = false;      // minutes of processor time: tried at full size
};

class EveryTechnique : public testing::TestWithParam<Kind> {};

TEST_P(EveryTechnique, RunsOrSaysWhyNot) {
  const Kind& kind = GetParam();
  if (kind.is_large && !test::is_full_size()) GTEST_SKIP() << "at full size";
  const BaseScenario step{std::string(R"({"schema": "spillway-scenario", "version": 1, "model": )") + kind.model +
                              R"(, "hardware": {"profile": "dgx-a100-40gb"},
                                 "offload": {"least_elements": 10000, "drives": "samsung-990-pro-2tb"}})",
                          "step.json", ""};
  std::vector<Candidate> ways = technique_candidates(step);
  if (*kind.schedule != 0) {
    std::erase_if(ways, [](const Candidate& way) {
      return std::any_of(way.edits.begin(), way.edits.end(), [](const std::string& edit) {
        return edit.starts_with(schedule_key) && !edit.ends_with("=null");
      });
    });
    for (Candidate& way : ways) way.edits.push_back(setting(schedule_key, kind.schedule));
  }
  std::size_t ran = 0;
  for (const Row& row : evaluate(step, ways)) {
    SCOPED_TRACE(row.candidate.name);
    ASSERT_TRUE(row.is_done);
    if (!row.ran()) {
      EXPECT_THAT(row.error, testing::Not(testing::HasSubstr("wait for each other")));
      EXPECT_THAT(row.error, testing::HasSubstr(": ")) << "no place";
      continue;
    }
    ++ran;
    const Result result = run(load(scenario_of(step, row.candidate.edits)));
    EXPECT_EQ(row.result.fingerprint, result.fingerprint);
    EXPECT_EQ(row.result.step_time, result.step_time);
    EXPECT_EQ(row.result.memory.peak_reserved, result.memory.peak_reserved);
  }
  EXPECT_GE(ran, ways.size() * 3 / 4) << "of " << ways.size();
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EveryTechnique,
    testing::Values(
        Kind{"dense", R"({"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 1,
                          "gradient_accumulation": 2})"},
        Kind{"experts", R"({"name": "olmoe-1b-7b", "layers": 2, "sequence": 128, "micro_batch": 1,
                            "data_parallel": 4, "expert_parallel": 4, "framework": "megatron_2022"})"},
        Kind{"uneven_experts", R"({"name": "olmoe-1b-7b", "layers": 2, "sequence": 128, "micro_batch": 1,
                                   "data_parallel": 4, "expert_parallel": 4, "framework": "megatron_2022",
                                   "expert_load": "lognormal"})"},
        Kind{"stages", R"({"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 4, "pipeline_parallel": 2, "framework": "megatron_2022"})"},
        Kind{"gpipe", R"({"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 1,
                          "gradient_accumulation": 4, "pipeline_parallel": 2, "framework": "megatron_2022"})",
             "gpipe"},
        Kind{"zb_h1", R"({"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 1,
                          "gradient_accumulation": 4, "pipeline_parallel": 4, "framework": "megatron_2022"})",
             "zb-h1"},
        Kind{"zero1", R"({"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 1,
                          "gradient_accumulation": 2, "data_parallel": 4, "zero_stage": 1})"},
        Kind{"zero3", R"({"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 1,
                          "gradient_accumulation": 2, "data_parallel": 4, "zero_stage": 3})"},
        Kind{"zero1_stages", R"({"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 1,
                                 "gradient_accumulation": 4, "pipeline_parallel": 2, "data_parallel": 2,
                                 "zero_stage": 1, "framework": "megatron_2022"})"},
        Kind{"latent", R"({"name": "deepseek-v2-lite", "layers": 2, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})"},
        Kind{"windows", R"({"name": "gemma-3-270m", "layers": 6, "sequence": 1024, "micro_batch": 1,
                            "gradient_accumulation": 2})"},
        Kind{"hybrid", R"({"name": "qwen3.5-27b", "layers": 4, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})"},
        Kind{"mamba2_beside", R"({"name": "falcon-h1-0.5b", "layers": 2, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})"},
        Kind{"mamba2_experts", R"({"name": "nemotron-3-nano-30b-a3b", "layers": 7, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"first_mamba", R"({"name": "jamba-52b", "layers": 6, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"channel_decays", R"({"name": "kimi-linear-48b-a3b", "layers": 5, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"residual_groups", R"({"name": "kimi-k3", "layers": 5, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"compressed_keys", R"({"name": "deepseek-v4-flash", "layers": 5, "sequence": 256, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"chosen_blocks", R"({"name": "minimax-m3", "layers": 5, "sequence": 256, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"chosen_keys", R"({"name": "deepseek-v3.2", "layers": 4, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"convolutions", R"({"name": "lfm2-350m", "layers": 4, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})"},
        Kind{"two_head_widths", R"({"name": "gemma-4-26b-a4b", "layers": 6, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"layer_inputs", R"({"name": "gemma-4-e2b", "layers": 20, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"tower", R"({"name": "gemma-3-4b", "layers": 6, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"idle_experts", R"({"name": "longcat-flash", "layers": 2, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2})",
             "", true},
        Kind{"saved_modules", R"({"name": "llama-3-8b", "layers": 2, "sequence": 128, "micro_batch": 1,
                           "gradient_accumulation": 2, "trainable": "lora", "modules_to_save": "both"})"},
        Kind{"pairs", R"({"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 2,
                           "gradient_accumulation": 2, "loss": "preference", "reference": "model",
                           "framework": "huggingface"})"},
        Kind{"pairs_stages", R"({"name": "gpt2-small", "layers": 4, "sequence": 128, "micro_batch": 2,
                           "gradient_accumulation": 4, "loss": "preference", "reference": "model",
                           "framework": "huggingface", "pipeline_parallel": 2})"},
        Kind{"rollouts", R"({"name": "gpt2-small", "layers": 3, "sequence": 128, "micro_batch": 2,
                           "gradient_accumulation": 2, "loss": "group", "reference": "model", "rollout_memory": 0.3,
                           "rollout_group": 2, "prompt_tokens": 32, "framework": "huggingface"})"}),
    [](const testing::TestParamInfo<Kind>& each) { return std::string(each.param.name); });

TEST(CompareTechniques, SayWhatThePlainStepIsWithout) {
  const auto step = [](const std::string& more) {
    return BaseScenario{R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small")" + more +
                            R"(}, "hardware": {"profile": "dgx-a100-40gb"}})",
                        "step.json", ""};
  };
  EXPECT_EQ(taken_out(step("")), "");
  EXPECT_EQ(taken_out(step(R"(, "recompute": "none")")), "");
  EXPECT_EQ(taken_out(step(R"(, "recompute": "full", "optimizer_device": "cpu")")),
            "the plain step is without the scenario's own model.recompute=full, model.optimizer_device=cpu");
}

// The same of a recorded step, whose schedule and recomputation are as they are.
TEST(CompareTechniques, ARecordedStepToo) {
  const char* const root = std::getenv("SPILLWAY_SOURCE_ROOT");
  const BaseScenario step =
      base_scenario(std::string(root == nullptr ? "." : root) + "/cli/scenarios/gpt2-tiny-captured-cpu.json");
  const std::vector<Candidate> ways = technique_candidates(step);
  EXPECT_GT(ways.size(), 5U);
  std::size_t ran = 0;
  for (const Row& row : evaluate(step, ways)) {
    SCOPED_TRACE(row.candidate.name);
    ASSERT_TRUE(row.is_done);
    EXPECT_THAT(row.error, testing::Not(testing::HasSubstr("wait for each other")));
    if (!row.ran()) continue;
    ++ran;
    EXPECT_EQ(row.result.fingerprint, run(load(scenario_of(step, row.candidate.edits))).fingerprint);
  }
  EXPECT_GE(ran, 2U);
}

TEST(CompareTechniques, WaysAreOfUseToTheScenario) {
  const BaseScenario alone{R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small"},
                               "hardware": {"profile": "h100-sxm5-80gb"}})",
                           "alone.json", ""};
  for (const Candidate& way : technique_candidates(alone)) {
    EXPECT_FALSE(way.name.starts_with(chronos_schedule)) << "one stage has no schedule";
    EXPECT_NE(way.name, ssdtrain_word) << "there are no drives";
  }
  const std::vector<std::string> named = {"roam+stalloc"};
  const std::vector<Candidate> ways = technique_candidates(alone, named);
  ASSERT_EQ(ways.size(), 2U);
  EXPECT_THAT(ways[1].edits, testing::IsSupersetOf({"order.technique=roam", "memory.allocator=stalloc"}));
  const std::vector<std::string> unknown = {"roam+stallloc"};
  EXPECT_THROW(technique_candidates(alone, unknown), InputError);
}

}  // namespace
}  // namespace spillway::studies
