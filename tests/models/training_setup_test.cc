#include "models/training_setup.h"

#include <gtest/gtest.h>

#include "models/model_spec.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

// Bytes per parameter: weights + gradients + master weights + two moments (Rajbhandari et al. 2020, ZeRO, section 3.1:
// 16 for mixed-precision Adam).
TEST(TrainingSetup, ModelStateBytes) {
  EXPECT_EQ(TrainingSetup{}.model_state_bytes_per_parameter(), 2 + 2 + 4 + 8);
  EXPECT_EQ(TrainingSetup{.fp32_gradients = true}.model_state_bytes_per_parameter(), 2 + 4 + 4 + 8);
  EXPECT_EQ(TrainingSetup{.precision = TrainingPrecision::fp32}.model_state_bytes_per_parameter(), 4 + 4 + 8);
  EXPECT_EQ(TrainingSetup{.precision = TrainingPrecision::bf16}.model_state_bytes_per_parameter(), 2 + 2 + 4);
  EXPECT_EQ(TrainingSetup{.optimizer = OptimizerKind::sgd}.model_state_bytes_per_parameter(), 2 + 2 + 4);
}

TEST(TrainingSetup, TheModelFillsInWhatIsLeftOpen) {
  const TrainingSetup setup = resolve({}, find_model("gpt2-xl"));
  EXPECT_EQ(setup.sequence, 1024);
  EXPECT_EQ(setup.dropout, 0.1);
  EXPECT_EQ(resolve({.dropout = 0}, find_model("gpt2-xl")).dropout, 0);
}

TEST(TrainingSetup, OutOfRangeIsRefused) {
  const ModelSpec gpt = find_model("gpt2-small");
  EXPECT_THROW(resolve({.sequence = 1025}, gpt), InputError);
  EXPECT_THROW(resolve({.sequence = -1}, gpt), InputError);
  EXPECT_THROW(resolve({.micro_batch = 0}, gpt), InputError);
  EXPECT_THROW(resolve({.gradient_accumulation = 70'000}, gpt), InputError);
  EXPECT_THROW(resolve({.dropout = 1}, gpt), InputError);
  EXPECT_THROW(resolve({.precision = TrainingPrecision::fp32, .fp32_gradients = true}, gpt), InputError);
  EXPECT_NO_THROW(resolve({.sequence = 16'384}, find_model("llama-3-8b")));
}

}  // namespace
}  // namespace spillway
