// What Megatron-LM's earlier versions did differently: timers around every forward and backward, a fused softmax for
// some shapes only.
#include <gtest/gtest.h>

#include "models/step/parallel_trace.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::megatron {
namespace {

ModelSpec small_gpt(std::int64_t heads) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = 2;
  model.hidden = 256;
  model.heads = model.kv_heads = heads;
  model.head_dim = model.hidden / heads;
  model.feed_forward = 1024;
  model.vocabulary = 1024;
  model.max_positions = 64;
  return model;
}

TrainingSetup early() {
  return {.precision = TrainingPrecision::fp16_mixed,
          .recompute = Recompute::full,
          .flash_attention = false,
          .framework = Framework::megatron_2021,
          .tensor_parallel = 2};
}

Trace generate(const ModelSpec& model, const TrainingSetup& setup) {
  Trace trace = generate_parallel_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

// Two waits per forward and two per backward of every micro-batch.
TEST(Megatron, PhaseTimersWaitAroundEveryPhase) {
  TrainingSetup setup = early();
  setup.gradient_accumulation = 3;
  const std::int64_t before = count_of(generate(small_gpt(8), setup), "cudaDeviceSynchronize");
  setup.phase_timers = true;
  EXPECT_EQ(count_of(generate(small_gpt(8), setup), "cudaDeviceSynchronize"), before + 3 * 4);
}

// is_kernel_available: micro-batch x heads of a GPU a multiple of four.
TEST(Megatron, FusedSoftmaxTakesMultiplesOfFour) {
  TrainingSetup setup = early();
  EXPECT_GT(count_of(generate(small_gpt(8), setup), "masked_softmax"), 0);  // 4 heads a GPU
  const Trace parts = generate(small_gpt(4), setup);                        // 2
  EXPECT_EQ(count_of(parts, "masked_softmax"), 0);
  EXPECT_GT(count_of(parts, "softmax"), 0);
  EXPECT_EQ(count_of(parts, "softmax_backward"), 2);
  setup.micro_batch = 2;
  EXPECT_GT(count_of(generate(small_gpt(4), setup), "masked_softmax"), 0);
  setup.micro_batch = 1;
  setup.framework = Framework::megatron_2022;
  EXPECT_GT(count_of(generate(small_gpt(4), setup), "masked_softmax"), 0);
}

}  // namespace
}  // namespace spillway::models::megatron
