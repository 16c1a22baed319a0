// Whole weights between steps, to the byte, and the verdict of what they don't leave room for.
#include "scenario/load_and_save.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_spec.h"
#include "scenario/evaluation.h"
#include "scenario/scenario.h"
#include "sim/replay/verdict_words.h"

namespace spillway::scenario {
namespace {

LoadedScenario shared(const std::vector<std::string>& settings) {
  return load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": "gpt2-small",
                                 "sequence": 512, "data_parallel": 8, "zero_stage": 3, "framework": "huggingface"},
                                 "hardware": {"profile": "dgx-h100"}})",
                             "test.json", "/folder", settings));
}

constexpr std::int64_t words = 124'439'808;                            // GPT-2's parameters
constexpr std::int64_t outside = 50'257 * 768 + 1024 * 768 + 2 * 768;  // of its layers: FSDP's last unit
constexpr std::int64_t embedding = 50'257 * 768;                       // its largest parameter

// FSDP's shards are fp32 weights; DeepSpeed's 16-bit copies are gathered parameter by parameter.
TEST(LoadAndSave, Bytes) {
  const LoadedScenario fsdp = shared({"model.loading=each", "model.saving=first"});
  const Result result = run(fsdp);
  ASSERT_EQ(result.between_steps.size(), 3U);
  EXPECT_EQ(result.between_steps[0].name, "loading");
  EXPECT_TRUE(result.between_steps[0].on_host);
  EXPECT_EQ(result.between_steps[0].peak.count(), 8 * words * 4);
  const Bytes held = held_before(fsdp.trace);
  EXPECT_EQ((result.between_steps[1].peak - held).count(), outside * 4);
  EXPECT_EQ(result.between_steps[2].peak.count(), words * 4);
  EXPECT_EQ(result.verdict(), Verdict::fits);
  const LoadedScenario once = shared({"model.loading=first", "model.saving=gpu"});
  const Result whole = run(once);
  EXPECT_EQ(whole.between_steps[0].peak.count(), words * 4);
  EXPECT_EQ((whole.between_steps[1].peak - held_before(once.trace)).count(), words * 4);
  const LoadedScenario deepspeed = shared({"model.framework=deepspeed", "model.saving=first"});
  const Result narrow = run(deepspeed);
  EXPECT_EQ((narrow.between_steps[0].peak - held_before(deepspeed.trace)).count(), embedding * 2);
  EXPECT_EQ(narrow.between_steps[1].peak.count(), words * 2);
  EXPECT_TRUE(run(shared({})).between_steps.empty());
}

// The step fits, and what is gathered beside it doesn't: the verdict is no, and says what lacks.
TEST(LoadAndSave, DecidesTheVerdict) {
  const Result host = run(shared({"model.loading=each", "hardware.set.host.dram=2 GiB"}));
  EXPECT_EQ(host.memory.verdict(), Verdict::fits);
  EXPECT_EQ(host.verdict(), Verdict::does_not_fit);
  EXPECT_EQ(host.between_steps[0].short_of.count(), 8 * words * 4 - (std::int64_t{2} << 30));
  EXPECT_NE(verdict_sentence(host).find("host memory"), std::string::npos) << verdict_sentence(host);
  EXPECT_THROW(static_cast<void>(shared({"model.zero_stage=2", "model.saving=gpu"})), InputError);
}

}  // namespace
}  // namespace spillway::scenario
