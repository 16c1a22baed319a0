// DPO: pairs of sequences, the log-probabilities of their labels, and what a reference model adds.
#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::preference {
namespace {

constexpr std::int64_t s = 64, b = 4, h = 256, v = 1000;

ModelSpec small_llama() {
  ModelSpec model = find_model("llama-3-8b");  // with a head of its own
  model.layers = 2, model.hidden = h, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = v, model.feed_forward = 512;
  return model;
}

TrainingSetup preferences(Reference reference = Reference::none) {
  TrainingSetup setup;
  setup.sequence = s, setup.micro_batch = b, setup.precision = TrainingPrecision::bf16;
  setup.loss = LossForm::preference, setup.reference = reference;
  return setup;
}

Trace trace_of(const TrainingSetup& setup) {
  Trace trace = generate_trace(small_llama(), setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  EXPECT_EQ(memory_of(trace).left, 0);
  return trace;
}

std::int64_t held(const Trace& trace) { return memory_of(trace).before; }

// Of each sequence the log-softmax is kept, which together is what PyTorch's cross-entropy keeps, and four sequences
// have four kernels each way.
TEST(Preference, LogProbabilitiesBySequence) {
  TrainingSetup tokens = preferences();
  tokens.loss = LossForm::native;
  const Trace trace = trace_of(preferences()), plain = trace_of(tokens);
  EXPECT_EQ(count_of(trace, "log_softmax"), b);
  EXPECT_EQ(count_of(trace, "log_softmax_backward"), b);
  // A loss of four bytes in place of two.
  EXPECT_EQ(memory_of(trace).kept - memory_of(plain).kept, 4 - 2);
  EXPECT_EQ(flops_of(trace, Phase::forward), flops_of(plain, Phase::forward));
}

// A second model: its weights in 16 bits and nothing else of it, and a forward more for each micro-batch.
TEST(Preference, ReferenceModel) {
  const Trace alone = trace_of(preferences()), both = trace_of(preferences(Reference::model));
  const std::int64_t weights = 2 * parameter_count(small_llama());
  const std::int64_t angles = 2 * 2 * s * 32;
  EXPECT_EQ(held(both) - held(alone), weights + angles);
  EXPECT_EQ(memory_of(both).kept, memory_of(alone).kept);
  EXPECT_EQ(flops_of(both, Phase::forward), 2 * flops_of(alone, Phase::forward));
  EXPECT_EQ(flops_of(both, Phase::backward), flops_of(alone, Phase::backward));
  TrainingSetup again = preferences(Reference::model);
  again.recompute = Recompute::full;
  EXPECT_EQ(flops_of(trace_of(again), Phase::forward), 2 * flops_of(alone, Phase::forward));
}

// Whole with ZeRO 1, a share with ZeRO 3.
TEST(Preference, ReferenceModelOfSeveralRanks) {
  const auto added = [](std::int64_t stage) {
    TrainingSetup setup = preferences();
    setup.data_parallel = 4, setup.zero_stage = stage;
    const std::int64_t alone = held(trace_of(setup));
    setup.reference = Reference::model;
    return held(trace_of(setup)) - alone;
  };
  std::int64_t shares = 0;
  for (const Parameter& parameter : parameters(small_llama())) shares += 2 * ((parameter.elements() + 3) / 4);
  const std::int64_t angles = 2 * 2 * s * 32;
  EXPECT_EQ(added(1), 2 * parameter_count(small_llama()) + angles);
  EXPECT_EQ(added(3), shares + angles);
}

// With adapters the reference is the base: its forward has no product of theirs.
TEST(Preference, BaseWithoutAdapters) {
  TrainingSetup setup = preferences();
  setup.trainable = Trainable::lora;
  const Trace alone = trace_of(setup);
  setup.reference = Reference::base;
  const Trace both = trace_of(setup);
  EXPECT_EQ(held(both), held(alone));
  EXPECT_EQ(flops_of(both, Phase::forward) - flops_of(alone, Phase::forward),
            flops_of(trace_of(preferences()), Phase::forward));
  setup.data_parallel = 2, setup.zero_stage = 3;
  EXPECT_GT(count_of(trace_of(setup), "all_gather_weights"), 0);
}

// KTO: of each micro-batch the trained model's forward of other answers, and the reference's of both; any number of
// sequences.
TEST(Preference, UnpairedAnswersHaveOthersBeside) {
  const auto unpaired = [](Reference reference) {
    TrainingSetup setup = preferences(reference);
    setup.loss = LossForm::unpaired, setup.micro_batch = 3;
    return setup;
  };
  TrainingSetup pairs = preferences();
  pairs.micro_batch = 4;
  const Trace plain = trace_of(unpaired(Reference::none)), both = trace_of(unpaired(Reference::model));
  const std::int64_t once = flops_of(trace_of(pairs), Phase::forward) / 4 * 3;
  EXPECT_EQ(flops_of(plain, Phase::forward), 2 * once);
  EXPECT_EQ(flops_of(both, Phase::forward), 4 * once);
  EXPECT_EQ(flops_of(both, Phase::backward), flops_of(plain, Phase::backward));
  EXPECT_EQ(held(both) - held(plain), 2 * parameter_count(small_llama()) + 2 * 2 * s * 32);
  EXPECT_EQ(memory_of(both).kept, memory_of(plain).kept);
  TrainingSetup shared = unpaired(Reference::model);
  shared.data_parallel = 4, shared.zero_stage = 3;
  trace_of(shared);
}

// GRPO: the reference's weights are there, and its forwards a phase of their own.
TEST(Preference, GroupsHoldTheReferenceAlone) {
  TrainingSetup setup = preferences();
  setup.loss = LossForm::group, setup.micro_batch = 3;
  const Trace alone = trace_of(setup);
  setup.reference = Reference::model;
  const Trace both = trace_of(setup);
  EXPECT_EQ(held(both) - held(alone), 2 * parameter_count(small_llama()) + 2 * 2 * s * 32);
  EXPECT_EQ(flops_of(both, Phase::forward), flops_of(alone, Phase::forward));
}

// DeepSpeed's reference is an engine of its own: whole below stage 3; shares there, gathered for its forward.
TEST(Preference, UnderDeepSpeed) {
  TrainingSetup setup = preferences();
  setup.framework = Framework::deepspeed, setup.data_parallel = 4;
  for (const std::int64_t stage : {2, 3}) {
    setup.zero_stage = stage, setup.reference = Reference::none;
    const Trace alone = trace_of(setup);
    setup.reference = Reference::model;
    const Trace both = trace_of(setup);
    EXPECT_EQ(flops_of(both, Phase::forward), 2 * flops_of(alone, Phase::forward));
    EXPECT_EQ(flops_of(both, Phase::backward), flops_of(alone, Phase::backward));
    if (stage == 2)
      EXPECT_EQ(held(both) - held(alone), 2 * parameter_count(small_llama()) + 2 * 2 * s * 32);
    else
      EXPECT_GT(count_of(both, "all_gather_weights"), count_of(alone, "all_gather_weights"));
  }
}

// Tensor ranks gather the vocabulary; what a rank holds of the reference is what it holds of the weights.
TEST(Preference, TensorRanks) {
  TrainingSetup setup = preferences();
  setup.tensor_parallel = 2, setup.whole_vocabulary = true;
  const Trace alone = trace_of(setup);
  EXPECT_EQ(count_of(alone, "log_softmax"), b);
  setup.reference = Reference::model;
  const Trace both = trace_of(setup);
  std::int64_t weights = 0;
  for (const Parameter& parameter : parameters(small_llama())) {
    const bool is_split = parameter.columns > 1 && parameter.component != Component::embedding;
    weights += 2 * parameter.elements() / (is_split ? 2 : 1);
  }
  EXPECT_EQ(held(both) - held(alone), weights + 2 * 2 * s * 32);
  EXPECT_EQ(flops_of(both, Phase::forward), 2 * flops_of(alone, Phase::forward));
}

// Each stage holds its part of the reference, whose forward goes through the stages behind the trained model's: a
// message more for each micro-batch and pair of stages, and all stages together do twice the forward's products.
TEST(Preference, PipelineStages) {
  const auto staged = [](LossForm loss, Reference reference, const char* schedule) {
    TrainingSetup setup = preferences(reference);
    setup.loss = loss, setup.pipeline_parallel = 2, setup.gradient_accumulation = 3;
    setup.pipeline_schedule = schedule;
    return trace_of(setup);
  };
  const auto sent = [](const Trace& trace) { return count_of(trace, "send_reference"); };
  TrainingSetup one = preferences();
  one.gradient_accumulation = 3;
  const std::int64_t once = flops_of(trace_of(one), Phase::forward);
  for (const char* schedule : {"1f1b", "gpipe"}) {
    const Trace alone = staged(LossForm::preference, Reference::none, schedule);
    const Trace both = staged(LossForm::preference, Reference::model, schedule);
    EXPECT_EQ(flops_of(alone, Phase::forward), once);
    EXPECT_EQ(flops_of(both, Phase::forward), 2 * once);
    EXPECT_EQ(flops_of(both, Phase::backward), flops_of(alone, Phase::backward));
    EXPECT_EQ(sent(alone), 0);
    EXPECT_EQ(sent(both), 3);
    // The weights of both stages, and their tables of angles.
    const auto held_by_both = [](const Trace& trace) {
      return memory_of(trace, 0).before + memory_of(trace, 1).before;
    };
    EXPECT_EQ(held_by_both(both) - held_by_both(alone), 2 * parameter_count(small_llama()) + 2 * 2 * 2 * s * 32);
  }
  EXPECT_EQ(sent(staged(LossForm::unpaired, Reference::none, "1f1b")), 3);
  EXPECT_EQ(sent(staged(LossForm::unpaired, Reference::model, "1f1b")), 3 * 3);
}

TEST(Preference, WhatItRefuses) {
  const auto refused = [](TrainingSetup setup) { EXPECT_THROW(resolve(setup, small_llama()), InputError); };
  refused(preferences(Reference::base));
  TrainingSetup setup = preferences();
  setup.micro_batch = 3;
  refused(setup);
  setup = preferences();
  setup.tensor_parallel = 2;
  refused(setup);
  setup = preferences(Reference::model);
  setup.loss = LossForm::fused;
  refused(setup);
  setup = preferences();
  setup.rollout_memory = 0.3;  // pairs are in the data
  refused(setup);
  setup.loss = LossForm::group, setup.rollout_group = 4, setup.prompt_tokens = s / 2;
  EXPECT_NO_THROW(resolve(setup, small_llama()));
  setup.rollout_group = 3;
  refused(setup);
  setup.rollout_group = 4, setup.prompt_tokens = s;
  refused(setup);
  setup.prompt_tokens = 1, setup.rollout_parallel = 2;
  refused(setup);
  setup.rollout_parallel = 1;
  EXPECT_NO_THROW(resolve(setup, small_llama()));
  setup.pipeline_parallel = 2;
  EXPECT_NO_THROW(resolve(setup, small_llama()));
  setup.value_micro_batch = 1;  // of no value model
  refused(setup);
  setup.value_model = "same";
  EXPECT_NO_THROW(resolve(setup, small_llama()));
  setup.weight_device = StateDevice::cpu;
  refused(setup);
}

}  // namespace
}  // namespace spillway::models::preference
