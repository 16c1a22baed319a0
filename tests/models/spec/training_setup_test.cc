#include "models/spec/training_setup.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_spec.h"

namespace spillway::models {
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

// Counts of one kernel and the length of the trace stay bounded, whatever the input; what is real still passes.
TEST(TrainingSetup, StepsBeyondCountingAreRefused) {
  const ModelSpec llama = find_model("llama-3.1-405b");
  EXPECT_NO_THROW(resolve({.sequence = 131'072}, llama));
  EXPECT_THROW(resolve({.sequence = 1 << 24}, llama), InputError);
  EXPECT_THROW(resolve({.micro_batch = 1 << 15, .sequence = 8192}, llama), InputError);
  EXPECT_THROW(resolve({.sequence = 1, .gradient_accumulation = 60'000}, llama), InputError);
  ModelSpec wide = llama;
  wide.hidden = 1 << 20, wide.feed_forward = 1 << 20;
  EXPECT_THROW(resolve({.micro_batch = 1024, .sequence = 65'536}, wide), InputError);
}

TEST(TrainingSetup, FieldsByName) {
  TrainingSetup setup;
  set_field(setup, "micro_batch", "4");
  set_field(setup, "precision", "fp32");
  set_field(setup, "recompute", "full");
  set_field(setup, "optimizer_form", "fused");
  set_field(setup, "flash_attention", "false");
  set_field(setup, "dropout", "0.25");
  EXPECT_EQ(setup.micro_batch, 4);
  EXPECT_EQ(setup.precision, TrainingPrecision::fp32);
  EXPECT_EQ(setup.recompute, Recompute::full);
  EXPECT_EQ(setup.optimizer_form, OptimizerForm::fused);
  EXPECT_FALSE(setup.flash_attention);
  EXPECT_EQ(setup.dropout, 0.25);
  TrainingSetup again;
  for (const std::string& key : training_setup_keys()) set_field(again, key, field_text(setup, key));
  for (const std::string& key : training_setup_keys()) EXPECT_EQ(field_text(again, key), field_text(setup, key));
  EXPECT_THROW(set_field(setup, "microbatch", "4"), InputError);
  EXPECT_THROW(set_field(setup, "micro_batch", "4.5"), InputError);
  EXPECT_THROW(set_field(setup, "micro_batch", "99999999999999999999"), InputError);
  EXPECT_THROW(set_field(setup, "precision", "fp7"), InputError);
  EXPECT_THROW(set_field(setup, "flash_attention", "yes"), InputError);
}

}  // namespace
}  // namespace spillway::models
