// What an answer hangs on that nobody stated.
#include "studies/diagnosis/default_stakes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenario/evaluator.h"

namespace spillway::studies {
namespace {

struct Found {
  LoadedScenario loaded;
  Result result;
  std::vector<DefaultStake> stakes;
};

Found stakes_of(const std::string& model, const std::vector<std::string>& settings) {
  Found found;
  found.loaded = load(parse_scenario(R"({"schema": "spillway-scenario", "version": 1, "model": {"name": ")" + model +
                                         R"("}, "hardware": {"profile": "dgx-h100"}})",
                                     "test", "", settings));
  found.result = run(found.loaded);
  found.stakes = default_stakes(found.loaded, found.result);
  return found;
}

TEST(DefaultStakes, LogitsInFp32HangOnTheLoss) {
  const Found found = stakes_of("llama-3.2-1b", {"model.sequence=8192", "model.micro_batch=2"});
  ASSERT_EQ(found.stakes.size(), 1);
  const DefaultStake& loss = found.stakes.front();
  EXPECT_EQ(loss.key, "model.loss");
  const Found chunked = stakes_of("llama-3.2-1b", {"model.sequence=8192", "model.micro_batch=2", "model.loss=chunked"});
  EXPECT_EQ(loss.peak, chunked.result.memory.peak_reserved);
  EXPECT_EQ(loss.hangs, found.result.memory.peak_reserved - loss.peak);
  EXPECT_GT(loss.hangs, Bytes(std::int64_t{4} << 30));
  EXPECT_NE(stake_sentence(loss, found.result).find("hang on model.loss: fp32 here"), std::string::npos);
  EXPECT_TRUE(chunked.stakes.empty());
}

TEST(DefaultStakes, AHotRankNeedsMoreThanAnEvenOne) {
  const std::vector<std::string> spread = {
      "model.framework=megatron", "model.data_parallel=8",     "model.expert_parallel=8", "model.layers=4",
      "model.loss=fused",         "model.main_gradients=bf16", "model.micro_batch=2"};
  const Found found = stakes_of("qwen3-30b-a3b", spread);
  ASSERT_EQ(found.stakes.size(), 1);
  EXPECT_EQ(found.stakes.front().key, "model.expert_load");
  EXPECT_LT(found.stakes.front().hangs, Bytes(0));
  // A yes is asked only where it may be taken away.
  Result roomy = found.result, close = found.result;
  roomy.memory.limit = roomy.memory.peak_reserved + Bytes(std::int64_t{1} << 40);
  EXPECT_TRUE(default_stakes(found.loaded, roomy, true).empty());
  close.memory.limit = close.memory.peak_reserved + Bytes(1);
  EXPECT_EQ(default_stakes(found.loaded, close, true).size(), 1);
  std::vector<std::string> drawn = spread;
  drawn.emplace_back("model.expert_load=lognormal");
  EXPECT_TRUE(stakes_of("qwen3-30b-a3b", drawn).stakes.empty());
}

TEST(DefaultStakes, SmallOnesAreNotAskedFor) {
  EXPECT_TRUE(stakes_of("gpt2-small", {"model.micro_batch=1", "model.sequence=128"}).stakes.empty());
}

}  // namespace
}  // namespace spillway::studies
