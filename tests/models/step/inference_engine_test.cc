// The engine that answers beside the training: its memory to the byte, and its time as closed forms.
#include "models/step/inference_engine.h"

#include <gtest/gtest.h>

#include "tests/models/example_profile.h"

namespace spillway::models::engine {
namespace {

constexpr std::int64_t prompt = 100, answer = 300, layers = 4, width = 256, key_heads = 2, head = 32, words = 1000;

ModelSpec small_llama() {
  ModelSpec model = find_model("llama-3-8b");  // with a head of its own
  model.layers = layers, model.hidden = width, model.heads = 8, model.kv_heads = key_heads, model.head_dim = head;
  model.vocabulary = words, model.feed_forward = 512;
  return model;
}

TrainingSetup answers(double memory = 0.25) {
  TrainingSetup setup;
  setup.loss = LossForm::group, setup.micro_batch = 8, setup.gradient_accumulation = 4, setup.data_parallel = 4;
  setup.sequence = prompt + answer, setup.prompt_tokens = prompt, setup.rollout_group = 8;
  setup.rollout_memory = memory;
  return resolve(setup, small_llama());
}

InferenceEngine engine_of(const TrainingSetup& setup) {
  return inference_engine(small_llama(), setup, example_profile().gpu);
}

TEST(InferenceEngine, MemoryToTheByte) {
  const InferenceEngine engine = engine_of(answers());
  EXPECT_EQ(engine.taken.count(), 20'000'000'000);
  EXPECT_EQ(engine.weights.count(), 2 * parameter_count(small_llama()));
  EXPECT_EQ(engine.cache, engine.taken - engine.weights);
  EXPECT_EQ(engine.answer_cache.count(), (prompt + answer) * layers * 2 * key_heads * head * 2);
  EXPECT_EQ(engine.answers, 8 * 4);  // of each replica
  EXPECT_EQ(engine.at_once, engine.answers);
}

// Two GPUs of an engine: matrices by halves, norms whole, a key head each, the answers of both.
TEST(InferenceEngine, SplitOverGpus) {
  TrainingSetup setup = answers();
  setup.rollout_parallel = 2;
  const InferenceEngine engine = engine_of(setup);
  const std::int64_t norms = (2 * layers + 1) * width, matrices = parameter_count(small_llama()) - norms;
  EXPECT_EQ(engine.weights.count(), 2 * (matrices / 2 + norms));
  EXPECT_EQ(engine.answer_cache.count(), (prompt + answer) * layers * 2 * (key_heads / 2) * head * 2);
  EXPECT_EQ(engine.answers, 2 * 8 * 4);
  setup.rollout_parallel = 4;  // more GPUs than key heads: each has one
  EXPECT_EQ(engine_of(setup).answer_cache, engine.answer_cache);
}

TEST(InferenceEngine, SleepLevels) {
  TrainingSetup setup = answers();
  EXPECT_EQ(engine_of(setup).asleep, engine_of(setup).taken);
  setup.rollout_sleep = 1;
  EXPECT_EQ(engine_of(setup).asleep, Bytes(0));
  EXPECT_EQ(engine_of(setup).on_host, engine_of(setup).weights);
  setup.rollout_sleep = 2;
  EXPECT_EQ(engine_of(setup).asleep, Bytes(0));
  EXPECT_EQ(engine_of(setup).on_host, Bytes(0));
}

// Room for ten answers beside the weights: the 32 go in 3.2 rounds.
TEST(InferenceEngine, RoundsOfACacheThatIsSmall) {
  const InferenceEngine roomy = engine_of(answers());
  const double bytes = static_cast<double>(roomy.weights.count() + 10 * roomy.answer_cache.count() + 1000);
  const InferenceEngine engine = engine_of(answers(bytes / 80e9));
  EXPECT_EQ(engine.at_once, 10);
  const double half_way = static_cast<double>((prompt + answer / 2) * layers * 2 * key_heads * head * 2);
  const auto weights = static_cast<double>(engine.weights.count());
  EXPECT_NEAR(to_seconds(engine.tokens), answer * (3.2 * weights + 32 * half_way) / (0.7 * 3e12), 1e-9);
  EXPECT_NEAR(to_seconds(roomy.tokens), answer * (weights + 32 * half_way) / (0.7 * 3e12), 1e-9);
  // A prompt goes through once for its eight answers.
  const auto products = static_cast<double>(matmul_parameter_count(small_llama()));
  EXPECT_NEAR(to_seconds(roomy.prompts), 4 * prompt * 2 * products / (0.5 * 1e15), 1e-12);
}

TEST(InferenceEngine, WeightsThatDoNotFitLeaveNoAnswer) {
  const InferenceEngine engine = engine_of(answers(1e-5));
  EXPECT_LT(engine.cache, Bytes(0));
  EXPECT_EQ(engine.at_once, 0);
}

}  // namespace
}  // namespace spillway::models::engine
