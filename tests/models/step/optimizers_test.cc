// States of optimizers with little of it, to the byte.
#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/trainable.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::optimizers {
namespace {

ModelSpec small_llama() {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 2, model.hidden = 256, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1000, model.feed_forward = 520;
  return model;
}

TrainingSetup setup_of(OptimizerKind optimizer, TrainingPrecision precision = TrainingPrecision::bf16) {
  TrainingSetup setup;
  setup.sequence = 64, setup.optimizer = optimizer, setup.precision = precision, setup.optimizer_rank = 16;
  return setup;
}

Trace trace_of(const TrainingSetup& setup, const ModelSpec& model = small_llama()) {
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  EXPECT_EQ(memory_of(trace).left, 0);
  return trace;
}

std::int64_t bytes_of(const Trace& trace, TensorRole role) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.tensors.role[i] == role) sum += trace.tensors.bytes[i].count();
  return sum;
}

// What `per_parameter` says of each, summed up.
template <class Bytes>
std::int64_t sum_over(const Bytes& per_parameter) {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters(small_llama())) sum += per_parameter(parameter);
  return sum;
}

bool is_matrix_inside(const Parameter& parameter) { return parameter.layer >= 0 && parameter.columns > 1; }

// Two moments of a byte and a scale per 256, or of half a byte and one per 128, of what is large and divides; else two
// as wide as precision has them.
TEST(Optimizers, TorchaoMoments) {
  for (const std::int64_t wide : {2, 4}) {
    const TrainingPrecision precision = wide == 2 ? TrainingPrecision::bf16 : TrainingPrecision::bf16_mixed;
    const std::int64_t masters = wide == 2 ? 0 : 4 * parameter_count(small_llama());
    EXPECT_EQ(bytes_of(trace_of(setup_of(OptimizerKind::torchao_8bit, precision)), TensorRole::optimizer_state),
              masters + sum_over([&](const Parameter& each) {
                const std::int64_t n = each.elements();
                return n < 4096 || n % 256 != 0 ? 2 * wide * n : 2 * n + 8 * (n / 256);
              }));
    EXPECT_EQ(bytes_of(trace_of(setup_of(OptimizerKind::torchao_4bit, precision)), TensorRole::optimizer_state),
              masters + sum_over([&](const Parameter& each) {
                const std::int64_t n = each.elements();
                return n < 4096 || n % 128 != 0 ? 2 * wide * n : n + 8 * (n / 128);
              }));
  }
}

// transformers' Trainer leaves the embedding's moments in 32 bits, beside bitsandbytes' of a byte.
TEST(Optimizers, EmbeddingsUnderTheTrainer) {
  TrainingSetup setup = setup_of(OptimizerKind::adamw_8bit);
  const std::int64_t alone = bytes_of(trace_of(setup), TensorRole::optimizer_state);
  setup.framework = Framework::huggingface;
  const std::int64_t n = 1000 * 256;
  EXPECT_EQ(bytes_of(trace_of(setup), TensorRole::optimizer_state) - alone, 8 * n - (2 * n + 8 * n / 256));
}

// Of a matrix m by n inside layers, m <= n: moments of r n, GaLore's projection of r m; two plain moments of the rest.
TEST(Optimizers, ProjectedGradients) {
  constexpr std::int64_t r = 16;
  const auto state = [](std::int64_t projections) {
    return sum_over([&](const Parameter& each) {
      const std::int64_t m = std::min(each.rows, each.columns), n = std::max(each.rows, each.columns);
      return is_matrix_inside(each) ? 2 * (2 * r * n + projections * r * m) : 4 * each.elements();
    });
  };
  EXPECT_EQ(bytes_of(trace_of(setup_of(OptimizerKind::galore_adamw)), TensorRole::optimizer_state), state(1));
  EXPECT_EQ(bytes_of(trace_of(setup_of(OptimizerKind::apollo_adamw)), TensorRole::optimizer_state), state(0));
  // A product into the space, and with GaLore one back.
  const std::int64_t once =
      sum_over([](const Parameter& each) { return is_matrix_inside(each) ? 2 * r * each.elements() : 0; });
  EXPECT_EQ(flops_of(trace_of(setup_of(OptimizerKind::galore_adamw)), Phase::optimizer), 2 * once);
  EXPECT_EQ(flops_of(trace_of(setup_of(OptimizerKind::apollo_adamw)), Phase::optimizer), once);
}

// Experts have a projection each.
TEST(Optimizers, ProjectedGradientsOfExperts) {
  ModelSpec model = small_llama();
  model.experts = {.count = 4, .active = 2, .width = 128};
  std::int64_t state = 0;
  for (const Parameter& each : parameters(model)) {
    const std::int64_t count = std::max<std::int64_t>(1, each.experts), rows = each.rows / count;
    const std::int64_t m = std::min(rows, each.columns), n = std::max(rows, each.columns);
    const std::int64_t r = std::min<std::int64_t>(16, m);
    state += is_matrix_inside(each) ? 2 * count * (2 * r * n + r * m) : 4 * each.elements();
  }
  EXPECT_EQ(bytes_of(trace_of(setup_of(OptimizerKind::galore_adamw), model), TensorRole::optimizer_state), state);
}

// No state, or a row and a column of factors; and no more gradients at a time than the tied embedding's two, which
// meet.
TEST(Optimizers, UpdatesInTheBackward) {
  const Trace lomo = trace_of(setup_of(OptimizerKind::lomo)), adalomo = trace_of(setup_of(OptimizerKind::adalomo));
  EXPECT_EQ(bytes_of(lomo, TensorRole::optimizer_state), 0);
  EXPECT_EQ(bytes_of(adalomo, TensorRole::optimizer_state), sum_over([](const Parameter& each) {
              return 4 * (each.columns > 1 ? each.rows + each.columns : each.elements());
            }));
  for (const Trace& trace : {lomo, adalomo}) {
    std::int64_t live = 0, most = 0;
    for (const MemoryEvent& event : trace.memory_events) {
      if (trace.tensors.role[index_of(event.tensor)] != TensorRole::gradient ||
          event.action == MemoryAction::free_completed)
        continue;
      live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
      most = std::max(most, live);
    }
    EXPECT_EQ(live, 0);
    EXPECT_LE(most, 2 * 2 * 1000 * 256);
    // Every weight is written.
    std::int64_t written = 0;
    for (const Use& use : trace.uses)
      written += use.access == Access::write && trace.tensors.role[index_of(use.tensor)] == TensorRole::weight ? 1 : 0;
    EXPECT_GE(written, static_cast<std::int64_t>(parameters(small_llama()).size()));
  }
}

TEST(Optimizers, WhatTheyRefuse) {
  const auto refused = [](TrainingSetup setup) { EXPECT_THROW(resolve(setup, small_llama()), InputError); };
  refused(setup_of(OptimizerKind::lomo, TrainingPrecision::bf16_mixed));
  TrainingSetup setup = setup_of(OptimizerKind::lomo);
  setup.gradient_accumulation = 2;
  refused(setup);
  setup = setup_of(OptimizerKind::galore_adamw);
  setup.data_parallel = 2, setup.zero_stage = 1;
  refused(setup);
}

// A block of BAdam's: everything in 16 bits, and 4 bytes of master, gradient and two moments each of one layer.
TEST(Optimizers, OneLayerAtATime) {
  TrainingSetup setup = setup_of(OptimizerKind::adamw, TrainingPrecision::bf16_mixed);
  setup.fp32_gradients = true, setup.trained_layers = 1;
  const std::int64_t layer = sum_over([](const Parameter& each) { return each.layer == 0 ? each.elements() : 0; });
  const std::int64_t whole = 2 * parameter_count(small_llama());
  for (const std::int64_t frozen : {0, 1}) {
    setup.frozen_layers = frozen;
    const Trace trace = trace_of(setup);
    EXPECT_EQ(bytes_of(trace, TensorRole::weight), whole);
    EXPECT_EQ(bytes_of(trace, TensorRole::optimizer_state), 12 * layer);
    EXPECT_EQ(memory_of(trace).before - bytes_of(trace, TensorRole::weight), 16 * layer + 64 * 32 * 2 * 2);
    EXPECT_EQ(trainable_counts(small_llama(), resolve(setup, small_llama())).trained, layer);
  }
  setup.frozen_layers = 2;
  EXPECT_THROW(resolve(setup, small_llama()), InputError);
}

}  // namespace
}  // namespace spillway::models::optimizers
