// Experts and latent attention split over tensor groups, spread over ranks and shared out by ZeRO: activation bytes,
// flops, parameters and model state against closed forms.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_part.h"
#include "models/step/parallel_trace.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::split_experts {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b;  // tokens per sequence, sequences, tokens
constexpr std::int64_t h = 256, a = 8, kv = 64, f = 512, e = 8, k = 2;

Trace generate(const ModelSpec& model, TrainingSetup setup = {}) {
  if (!model.reads_images()) setup.sequence = s;
  setup.micro_batch = b;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

ModelSpec experts() {
  ModelSpec model = find_model("mixtral-8x7b");
  model.layers = 2, model.hidden = h, model.heads = a, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1024, model.feed_forward = f;
  model.experts = {.count = e, .active = k, .width = f};
  return model;
}

ModelSpec latent(std::int64_t query_rank = 80) {
  ModelSpec model = find_model("deepseek-v2-lite");
  model.layers = 2, model.hidden = h, model.heads = model.kv_heads = 4, model.vocabulary = 1024;
  model.feed_forward = f, model.experts = {};
  model.latent = {.query_rank = query_rank, .kv_rank = 48, .rope_dim = 16, .nope_dim = 32, .value_dim = 24};
  model.head_dim = 48;
  return model;
}

// Shared and routed experts under latent attention, the first layer dense.
ModelSpec both() {
  ModelSpec model = latent();
  model.layers = 3;
  model.experts = {.count = e, .active = k, .width = f, .shared_width = 128, .first_dense_layers = 1};
  return model;
}

// What one more layer keeps for its backward.
std::int64_t kept_per_layer(ModelSpec model, const TrainingSetup& setup) {
  const HeldBytes less = memory_of(generate(model, setup));
  ++model.layers;
  const HeldBytes more = memory_of(generate(model, setup));
  EXPECT_EQ(more.left, 0);
  return more.kept - less.kept;
}

// Over T ranks: queries, keys, values, their result and the four tensors of an expert's width are split. Whole: input,
// norm, second input and norm, rows as permuted and as they came out, the router's softmax and choices.
TEST(SplitExperts, ActivationBytesOfALayer) {
  const std::int64_t T = 2;
  EXPECT_EQ(kept_per_layer(experts(), {.tensor_parallel = T}), 2 * t * (4 * h + (2 * h + 2 * kv) / T) + 8 * t +
                                                                   4 * a * t / T + 2 * t * k * (2 * h + 4 * f / T) +
                                                                   4 * t * e + 12 * t * k);
}

// With sequence parallelism everything is split but the rows that the products read, and attention's gathered input.
TEST(SplitExperts, ActivationBytesWithSequenceParallelism) {
  const std::int64_t T = 2;
  EXPECT_EQ(kept_per_layer(experts(), {.tensor_parallel = T, .sequence_parallel = true}),
            (2 * t * (6 * h + 2 * kv) + 8 * t + 4 * a * t + 2 * t * k * (h + 4 * f) + 4 * t * e + 12 * t * k) / T +
                2 * t * k * h + 2 * t * h * (T - 1) / T);
}

// Whole on each rank: the stream, the bottlenecks and the latent's norm.
TEST(SplitLatentAttention, ActivationBytesOfALayer) {
  const std::int64_t wide = 48, v = 24, c = 48, r = 16;
  for (const std::int64_t T : {2, 4}) {
    const std::int64_t split = 2 * t * (2 * 4 * wide + 2 * 4 * v + 4 * f) + 4 * 4 * t;
    const std::int64_t whole = 2 * t * (4 * h + (c + r) + c + 2 * 80) + 4 * 4 * t;
    const std::int64_t gathered = 2 * t * (h + c + 80);  // what products split by outputs read
    EXPECT_EQ(kept_per_layer(latent(), {.tensor_parallel = T}), whole + split / T);
    EXPECT_EQ(kept_per_layer(latent(), {.tensor_parallel = T, .sequence_parallel = true}),
              (whole + split) / T + gathered * (T - 1) / T);
  }
}

// With sequence parallelism no product is done twice: T ranks do what one rank does alone.
TEST(SplitExperts, FlopsAddUp) {
  for (const ModelSpec& model : {experts(), latent(), latent(0), both()}) {
    const std::int64_t forward = flops_of(generate(model), Phase::forward);
    const std::int64_t backward = flops_of(generate(model), Phase::backward);
    for (const std::int64_t T : {2, 4}) {
      if (model.kv_heads % T != 0) continue;
      const Trace part = generate(model, {.tensor_parallel = T, .sequence_parallel = true});
      EXPECT_EQ(T * flops_of(part, Phase::forward), forward);
      EXPECT_EQ(T * flops_of(part, Phase::backward), backward);
    }
  }
}

bool is_whole(const Parameter& parameter) {
  for (const char* name : {"norm", "router", "q_down", "kv_down"})
    if (parameter.name.find(name) != std::string::npos) return true;
  return false;
}

// Parts of a tensor group and of an expert group add up to the model.
TEST(SplitExperts, PartsAddUp) {
  for (const ModelSpec& model : {experts(), latent(), both()})
    for (const std::int64_t T : {1, 2})
      for (const std::int64_t E : {1, 4}) {
        if (!model.has_experts() && E > 1) continue;
        const TrainingSetup setup{.tensor_parallel = T, .data_parallel = 8, .expert_parallel = E};
        std::int64_t sum = 0;
        for (const LocalParameter& local : local_parameters(model, setup, {.layers = {0, model.layers}}))
          sum += local.shape.elements() * (is_whole(local.shape) ? 1 : T) * (local.shape.experts > 0 ? E : 1);
        EXPECT_EQ(sum, parameter_count(model));
      }
}

// Every part has a gradient when the optimizer starts: 16 bytes for each parameter of the rank.
TEST(SplitExperts, EveryParameterHasAGradient) {
  for (const ModelSpec& model : {experts(), latent(), both()})
    for (const bool sequence : {false, true}) {
      const TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = sequence};
      std::int64_t mine = 0;
      for (const LocalParameter& local : local_parameters(model, setup, {.layers = {0, model.layers}}))
        mine += local.shape.elements();
      const HeldBytes memory = memory_of(generate(model, setup));
      EXPECT_EQ(memory.before_optimizer - memory.before, 2 * mine);
    }
}

// Bytes before the step of 18 per parameter; d = 4 ranks, experts spread over E of them and so held by d / E.
TEST(SplitExperts, ZeroSharesExpertsAmongTheirHolders) {
  const ModelSpec model = experts();
  const std::int64_t routed = parameter_counts(model).experts, rest = parameter_count(model) - routed, d = 4;
  const std::int64_t angles = 2 * 2 * s * 32;
  for (const std::int64_t E : {1, 2, 4}) {
    const std::int64_t held = rest + routed / E, shared = (rest + routed) / d;
    const auto before = [&](std::int64_t stage) {
      TrainingSetup setup{.framework = Framework::megatron_2022, .data_parallel = d, .expert_parallel = E};
      setup.zero_stage = stage;
      const HeldBytes memory = memory_of(generate(model, setup));
      EXPECT_EQ(memory.left, 0);
      return memory.before - angles;
    };
    EXPECT_EQ(before(0), 18 * held);
    EXPECT_EQ(before(1), 6 * held + 12 * shared);
    EXPECT_EQ(before(2), 2 * held + 16 * shared);
    EXPECT_EQ(before(3), 18 * shared);
  }
}

// Gradients of experts are reduced, and their weights gathered, over d / E ranks; not at all where each expert has one
// holder.
TEST(SplitExperts, ExpertsTravelAmongTheirHolders) {
  const auto groups = [](std::int64_t E) {
    TrainingSetup setup{.data_parallel = 4, .expert_parallel = E, .zero_stage = 3, .bucket_bytes = 1 << 30};
    const Trace trace = generate(experts(), setup);
    int with_holders = 0;
    for (const Collective& collective : trace.collectives)
      with_holders += trace.strings.text(collective.group) == "expert data" ? 1 : 0;
    return with_holders;
  };
  EXPECT_EQ(groups(4), 0);
  EXPECT_EQ(groups(1), 0);
  EXPECT_EQ(groups(2), 2 * 2 + 2);  // two layers gathered twice and reduced apart, however large a bucket may be
}

// Sequence parallelism: rows gathered and reduce-scattered around the products, forwards and the other way backwards.
TEST(SplitExperts, CollectivesOfALayer) {
  ModelSpec model = experts();
  const TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = true, .data_parallel = 2, .expert_parallel = 2};
  const Trace two = generate(model, setup);
  model.layers = 3;
  const Trace three = generate(model, setup);
  const auto more = [&](const char* name) { return count_of(three, name) - count_of(two, name); };
  EXPECT_EQ(more("all_to_all"), 4);
  // Attention: x in, its result's gradient; experts: rows in, results' gradient.
  EXPECT_EQ(more("all_gather"), 2 + 2);
  EXPECT_EQ(more("reduce_scatter"), 2 + 2);
}

// The fullest rank: its experts' rows, their products and what they keep grow, the tokens around them don't.
TEST(SplitExperts, TheFullestRank) {
  for (const Framework framework : {Framework::eager, Framework::megatron}) {
    for (const ExpertDispatcher dispatcher : {ExpertDispatcher::nccl, ExpertDispatcher::deepep}) {
      const bool engine = framework == Framework::megatron;
      if (!engine && dispatcher != ExpertDispatcher::nccl) continue;
      const auto trace = [&](double imbalance) {
        return generate(experts(), {.framework = framework,
                                    .data_parallel = 4,
                                    .expert_parallel = 4,
                                    .expert_dispatcher = dispatcher,
                                    .expert_imbalance = imbalance});
      };
      const Trace even = trace(1), fullest = trace(1.5);
      const std::int64_t products = 2 * 3 * 2 * t * k * h * f;  // layers, matrices
      EXPECT_EQ(flops_of(fullest, Phase::forward) - flops_of(even, Phase::forward), products / 2);
      EXPECT_EQ(flops_of(fullest, Phase::backward) - flops_of(even, Phase::backward), products);
      EXPECT_GT(memory_of(fullest).kept, memory_of(even).kept);
      EXPECT_EQ(memory_of(fullest).left, 0);
    }
  }
  EXPECT_THROW(resolve({.expert_imbalance = 1.5}, experts()), InputError);
  EXPECT_THROW(resolve({.data_parallel = 2, .expert_parallel = 2, .expert_imbalance = 3}, experts()), InputError);
  EXPECT_THROW(resolve({.data_parallel = 2, .expert_parallel = 2, .expert_imbalance = 0.5}, experts()), InputError);
}

// Experts without gates (Switch Transformer) keep up and its gelu, or the relu's result alone, of four tensors.
TEST(SplitExperts, WithoutGates) {
  ModelSpec model = experts();
  const std::int64_t gated = kept_per_layer(model, {});
  for (const Activation activation : {Activation::gelu, Activation::relu}) {
    model.activation = activation;
    EXPECT_EQ(gated - kept_per_layer(model, {}), 2 * t * k * (activation == Activation::relu ? 3 : 2) * f);
    EXPECT_EQ(flops_of(generate(model), Phase::forward),
              2 * t * matmul_parameter_count(model) + 2 * 2 * b * s * s * 256);
  }
}

// Every bundled decoder and encoder, cut to two layers, split over tensors with and without the sequence: T ranks hold
// the model, norms and bottlenecks whole, and have a gradient for each part.
TEST(SplitExperts, BundledModelsSplitOverTensors) {
  for (const std::string& name : bundled_models()) {
    ModelSpec model = find_model(name);
    if (model.hidden > 2048 || model.kv_heads % 2 != 0 || model.vocabulary % 2 != 0) continue;
    if ((model.has_mamba() && model.mamba.groups % 2 != 0) || model.embedding_width > 0) continue;  // refused
    model.layers = std::min<std::int64_t>(2, model.layers);
    model.encoder_layers = std::min<std::int64_t>(2, model.encoder_layers);
    for (const bool sequence : {false, true}) {
      if (sequence && (model.reads_images() || model.pretraining_heads)) continue;
      TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = sequence};
      std::int64_t mine = 0;
      for (const LocalParameter& local : local_parameters(model, setup, {.layers = {0, model.all_layers()}}))
        if (!local.shape.name.ends_with("selection_bias")) mine += local.shape.elements();
      const HeldBytes memory = memory_of(generate(model, setup));
      EXPECT_EQ(memory.before_optimizer - memory.before, 2 * mine) << name;
      EXPECT_EQ(memory.left, 0) << name;
    }
  }
}

// Norms over all heads have their statistics summed over the group, two a layer forwards and two backwards; norms that
// the heads share have their gradients summed after the backward instead.
TEST(SplitExperts, NormsOfQueriesAndKeys) {
  ModelSpec model = experts();
  model.experts = {};
  model.query_key_norm = true;
  const auto partial = [&] {
    int count = 0;
    for (const LocalParameter& local : local_parameters(model, {.tensor_parallel = 2}, {.layers = {0, 2}}))
      count += local.is_partial_sum ? 1 : 0;
    return count;
  };
  EXPECT_EQ(partial(), 2 * 2);
  model.query_key_norm = false;
  model.wide_query_key_norm = true;
  EXPECT_EQ(partial(), 0);
  EXPECT_EQ(count_of(generate(model, {.tensor_parallel = 2}), "all_reduce_norm"), 2 * 4);
}

TEST(SplitExperts, EverySetUpRuns) {
  for (const Framework framework : {Framework::eager, Framework::megatron_2022})
    for (const Recompute recompute : {Recompute::none, Recompute::full})
      for (const std::int64_t stage : {0, 1, 2, 3}) {
        const TrainingSetup setup{.recompute = recompute,
                                  .framework = framework,
                                  .tensor_parallel = 2,
                                  .sequence_parallel = stage % 2 == 1,
                                  .data_parallel = 4,
                                  .expert_parallel = 2,
                                  .zero_stage = stage};
        EXPECT_EQ(memory_of(generate(both(), setup)).left, 0);
      }
  EXPECT_THROW(generate(experts(), {.tensor_parallel = 4}), InputError);  // two key heads
}

}  // namespace
}  // namespace spillway::models::split_experts
