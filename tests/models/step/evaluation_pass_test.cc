// Evaluations: forwards alone, what they allocate and keep, and what the allocator makes of them.
#include "models/step/evaluation_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/input_error.h"
#include "models/step/trace_generator.h"
#include "sim/devices/memory/allocation_stream.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::evaluation_pass {
namespace {

constexpr std::int64_t S = 256, b = 2, V = 1024;

ModelSpec small_llama(std::int64_t layers = 4) {
  ModelSpec model = find_model("llama-3-8b");
  model.layers = layers, model.hidden = 512, model.heads = 8, model.kv_heads = 4, model.head_dim = 64;
  model.feed_forward = 1024, model.vocabulary = V;
  return model;
}

TrainingSetup training(Framework framework) {
  return {.micro_batch = b,
          .sequence = S,
          .gradient_accumulation = 3,
          .loss = LossForm::fused,
          .framework = framework,
          .evaluate_every = 100};
}

Trace generate(const TrainingSetup& setup, const ModelSpec& model = small_llama()) {
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}
Trace evaluation(const TrainingSetup& setup, std::int64_t batches, const ModelSpec& model = small_llama()) {
  Trace trace =
      generate_evaluation(model, resolve(setup, model), CostModel(example_profile()), flat_cluster(), batches);
  trace.check_invariants();
  return trace;
}

// Beside what is there when the step begins.
std::int64_t peak_of(const Trace& trace, std::int16_t device = 0) {
  std::int64_t live = 0, peak = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != device || event.anchor == OpId::none) continue;
    if (event.action == MemoryAction::allocate) peak = std::max(peak, live += event.bytes.count());
    if (event.action == MemoryAction::free_requested) live -= event.bytes.count();
  }
  return peak;
}

// The forward's arithmetic for every batch, nothing else.
TEST(EvaluationPass, RunsForwardsAlone) {
  for (const Framework framework : {Framework::megatron, Framework::eager, Framework::huggingface}) {
    const Trace step = generate(training(framework)), forwards = evaluation(training(framework), 6);
    EXPECT_EQ(flops_of(forwards, Phase::forward), 2 * flops_of(step, Phase::forward));
    EXPECT_EQ(flops_of(forwards, Phase::backward), 0);
    EXPECT_EQ(flops_of(forwards, Phase::optimizer), 0);
    EXPECT_LT(peak_of(forwards), memory_of(step).kept);
  }
}

// No layer keeps anything: more layers need no more.
TEST(EvaluationPass, KeepsNothingOfALayer) {
  for (const Framework framework : {Framework::megatron, Framework::eager}) {
    const TrainingSetup setup = training(framework);
    EXPECT_EQ(peak_of(evaluation(setup, 2, small_llama(4))), peak_of(evaluation(setup, 2, small_llama(9))));
    EXPECT_EQ(memory_of(evaluation(setup, 2)).left, memory_of(evaluation(setup, 5)).left);
  }
}

TEST(EvaluationPass, HasItsOwnMicroBatch) {
  TrainingSetup setup = training(Framework::eager);
  setup.evaluation_micro_batch = 8;
  EXPECT_EQ(flops_of(evaluation(setup, 3), Phase::forward), 4 * flops_of(generate(setup), Phase::forward));
}

// Through stages and chunks of any schedule.
TEST(EvaluationPass, GoesThroughPipelines) {
  for (const std::string schedule : {"1f1b", "interleaved", "zb-v", "chimera", "seq1f1b"}) {
    TrainingSetup setup = training(Framework::eager);
    setup.pipeline_parallel = 2;
    setup.gradient_accumulation = 4;
    setup.pipeline_schedule = schedule;
    if (schedule == "interleaved") setup.pipeline_chunks = 2;
    const Trace forwards = evaluation(setup, 5);
    EXPECT_EQ(4 * flops_of(forwards, Phase::forward),
              5 * flops_of(generate(training(Framework::eager)), Phase::forward) * 4 / 3)
        << schedule;
  }
}

TEST(EvaluationPass, RunsUnderFsdp) {
  TrainingSetup setup = training(Framework::eager);
  setup.data_parallel = 4;
  setup.zero_stage = 3;
  setup.recompute = Recompute::full;
  const Trace forwards = evaluation(setup, 2);
  EXPECT_EQ(3 * flops_of(forwards, Phase::forward), 2 * flops_of(generate(setup), Phase::forward));
  EXPECT_GT(count_of(forwards, "all_gather_weights"), 0);
  EXPECT_EQ(count_of(forwards, "reduce_scatter_gradients"), 0);
}

// n batches of u = 4 d b S V bytes: while the last joins, the n - 1 before it, all n and the batch itself are there.
TEST(EvaluationPass, KeptLogitsAreThereTwice) {
  for (const std::int64_t d : {1, 2}) {
    TrainingSetup setup = training(Framework::huggingface);
    setup.data_parallel = d;
    setup.evaluation_keeps = EvaluationKeeps::logits;
    const std::int64_t u = 4 * d * b * S * V, ids = 16 * b * S;
    for (const std::int64_t n : {8, 16}) {
      setup.evaluation_batches = n;
      EXPECT_NEAR(static_cast<double>(peak_of(evaluation(setup, n))), static_cast<double>(2 * n * u), 1.1 * ids) << n;
    }
    setup.evaluation_batches = 16;
    setup.evaluation_flush = 4;
    EXPECT_NEAR(static_cast<double>(peak_of(evaluation(setup, 16))), static_cast<double>(2 * 4 * u), 1.1 * ids);
    EXPECT_EQ(count_of(evaluation(setup, 16), "Memcpy DtoH"), 4);
  }
}

// The step itself stays as it is; the allocator has been through an evaluation before.
TEST(EvaluationPass, IsPartOfTheAllocatorsHistory) {
  for (const Framework framework : {Framework::eager, Framework::megatron}) {
    TrainingSetup setup = training(framework);
    setup.evaluate_every = 0;
    const Trace plain = generate(setup);
    setup.evaluate_every = 10;
    setup.evaluation_micro_batch = 64;
    const Trace with = generate(setup);
    ASSERT_EQ(plain.ops.size(), with.ops.size());
    EXPECT_EQ(plain.ops.duration, with.ops.duration);
    ASSERT_EQ(plain.memory_events.size(), with.memory_events.size());
    const auto peaks = [](const Trace& trace, const char* policy) {
      return sim::replay_allocation_stream(trace, {.pool = {.policy = policy}}).statistics.all();
    };
    const std::int64_t alone = peak_of(evaluation(setup, 4));
    EXPECT_GE(peaks(with, "ideal").allocated_bytes.peak, memory_of(with).before + alone);
    EXPECT_GT(peaks(with, "ideal").allocated_bytes.peak, peaks(plain, "ideal").allocated_bytes.peak);
    EXPECT_GT(peaks(with, "torch").reserved_bytes.peak, peaks(plain, "torch").reserved_bytes.peak);
    EXPECT_EQ(peaks(with, "torch").allocated_bytes.current, peaks(with, "torch-expandable").allocated_bytes.current);
  }
}

std::string complaint(const TrainingSetup& setup) {
  try {
    resolve(setup, small_llama());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(EvaluationPass, RefusesWhatNoProgramDoes) {
  TrainingSetup setup = training(Framework::huggingface);
  EXPECT_EQ(complaint(setup), "");
  setup.evaluation_keeps = EvaluationKeeps::logits;
  EXPECT_EQ(complaint(setup), "");
  setup.framework = Framework::megatron;
  EXPECT_NE(complaint(setup).find("evaluation_keeps"), std::string::npos);
  setup = training(Framework::eager);
  setup.evaluate_every = 0;
  setup.evaluation_keeps = EvaluationKeeps::logits;
  EXPECT_NE(complaint(setup).find("there is no evaluation"), std::string::npos);
  setup = training(Framework::eager);
  setup.evaluation_batches = 0;
  EXPECT_NE(complaint(setup).find("evaluation_batches"), std::string::npos);
}

}  // namespace
}  // namespace spillway::models::evaluation_pass
