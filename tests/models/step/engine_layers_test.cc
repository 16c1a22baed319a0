// Megatron-core's layers on Transformer Engine: what they keep, what a process keeps for good, how its step came about.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "models/step/parallel_trace.h"
#include "models/step/trace_generator.h"
#include "sim/devices/memory/allocation_stream.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::engine_layers {
namespace {

constexpr std::int64_t h = 512, a = 8, g = 4, D = 64, f = 1024, S = 256, b = 2;

ModelSpec small_llama(std::int64_t layers) {
  ModelSpec model = find_model("llama-3-8b");
  model.layers = layers;
  model.hidden = h;
  model.heads = a;
  model.kv_heads = g;
  model.head_dim = D;
  model.feed_forward = f;
  model.vocabulary = 1024;
  return model;
}

TrainingSetup core() {
  return {.micro_batch = b, .sequence = S, .loss = LossForm::fused, .framework = Framework::megatron, .zero_stage = 1};
}

Trace generate(const ModelSpec& model, const TrainingSetup& setup) {
  Trace trace = generate_parallel_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

std::int64_t kept_by_a_layer(const TrainingSetup& setup, ModelSpec (*model)(std::int64_t layers) = small_llama) {
  return memory_of(generate(model(3), setup)).kept - memory_of(generate(model(2), setup)).kept;
}

// Per layer: input, both norms' results and the residual between, h each; queries and result, keys and values; fc1's
// result twice f wide and the activation; row statistics. RMSNorm has one number a row.
TEST(EngineLayers, KeepWhatTransformerEngineKeeps) {
  for (const std::int64_t t : {1, 2, 4}) {
    TrainingSetup setup = core();
    setup.tensor_parallel = t;
    setup.sequence_parallel = t > 1;
    EXPECT_EQ(kept_by_a_layer(setup),
              8 * S * b * h / t + 4 * S * b * (a + g) * D / t + 6 * S * b * f / t + 4 * S * b * a / t + 8 * S * b / t)
        << t;
  }
}

// Of eight ranks two share a key head: each keeps one head's keys and values, what is gathered goes again.
TEST(EngineLayers, RanksShareAKeyHead) {
  constexpr std::int64_t t = 2 * g;
  TrainingSetup setup = core();
  setup.tensor_parallel = t;
  setup.sequence_parallel = true;
  EXPECT_EQ(kept_by_a_layer(setup),
            8 * S * b * h / t + 4 * S * b * (a * D / t + D) + 6 * S * b * f / t + 4 * S * b * a / t + 8 * S * b / t);
  setup.framework = Framework::eager;
  EXPECT_THROW(generate(small_llama(2), setup), InputError);
  setup.framework = Framework::megatron;
  setup.tensor_parallel = 3 * g;  // of the twelve heads
  ModelSpec model = small_llama(2);
  model.heads = 3 * g, model.kv_heads = 2 * g;
  EXPECT_THROW(generate(model, setup), InputError) << "12 is no multiple of 8";
}

// All to all: the result before its exchange is kept as well.
TEST(EngineLayers, ExchangedHeadsKeepOneResultMore) {
  TrainingSetup setup = core();
  setup.context_parallel = 2;
  setup.context_exchange = ContextExchange::a2a;
  const std::int64_t local = S / 2;
  EXPECT_EQ(kept_by_a_layer(setup), 8 * local * b * h + 4 * local * b * (a + g) * D + 2 * local * b * a * D +
                                        6 * local * b * f + 4 * local * b * a + 8 * local * b);
}

// What weight gradients read has one byte; attention's result is kept by itself and, cast, by the projection.
TEST(EngineLayers, KeepOneByteOfProductsInputsInFp8) {
  for (const std::int64_t t : {1, 2}) {
    TrainingSetup setup = core();
    setup.precision = TrainingPrecision::fp8_mixed;
    setup.tensor_parallel = t;
    setup.sequence_parallel = t > 1;
    EXPECT_EQ(kept_by_a_layer(setup), S * b / t * (6 * h + 4 * (a + g) * D + a * D + 5 * f + 4 * a + 8)) << t;
  }
}

ModelSpec small_qwen(std::int64_t layers) {
  ModelSpec model = small_llama(layers);
  model.query_key_norm = true;
  return model;
}

// The norms of heads keep what they read, and a number for each head; their weights have gradients.
TEST(EngineLayers, NormsOfHeadsKeepTheirInputs) {
  const TrainingSetup setup = core();
  EXPECT_EQ(kept_by_a_layer(setup, small_qwen), kept_by_a_layer(setup) + S * b * (a + g) * (2 * D + 4));
  EXPECT_EQ(count_of(generate(small_qwen(2), setup), "rms_norm_backward_weight"), 2 * 4 + 1);
}

// Round the ring queries, keys and values stay packed.
TEST(EngineLayers, GoRoundTheRing) {
  TrainingSetup setup = core();
  setup.context_parallel = 2;
  const std::int64_t local = S / 2;
  EXPECT_EQ(kept_by_a_layer(setup), local * b * (8 * h + 2 * (a + 2 * g) * D + 2 * a * D + 6 * f + 4 * a + 8));
}

constexpr std::int64_t low = 128, latent = 96, nope = 64, rope = 32, value = 48;

ModelSpec small_latent(std::int64_t layers) {
  ModelSpec model = small_llama(layers);
  model.kv_heads = a;
  model.head_dim = nope + rope;
  model.latent = {.query_rank = low, .kv_rank = latent, .rope_dim = rope, .nope_dim = nope, .value_dim = value};
  return model;
}

// Heads and the parts of the sequence alike: a rank keeps its share of everything.
TEST(EngineLayers, LatentAttentionIsSplitOverTensorRanks) {
  const std::int64_t projected = 2 * a * (2 * (nope + rope) + value);
  const std::int64_t all = S * b * (8 * h + 4 * low + 4 * latent + projected + 2 * a * value + 4 * a + 16 + 6 * f);
  TrainingSetup setup = core();
  EXPECT_EQ(kept_by_a_layer(setup, small_latent), all);
  setup.tensor_parallel = 2;
  setup.sequence_parallel = true;
  EXPECT_EQ(kept_by_a_layer(setup, small_latent), all / 2);
  setup.recompute = Recompute::selective;
  setup.recompute_modules = "core_attn";
  EXPECT_EQ(kept_by_a_layer(setup, small_latent), all / 2 - 4 * S * b * a / 2);
  setup.recompute_modules = "mla_up_proj";  // the gathered key is kept whole
  EXPECT_EQ(kept_by_a_layer(setup, small_latent),
            all / 2 - S * b / 2 * (projected + 2 * low + 2 * latent) + 2 * S * b * rope);
}

// In fp8 what is made again isn't kept as a cast either.
TEST(EngineLayers, RecomputedInputsAreCastAgainInFp8) {
  TrainingSetup setup = core();
  setup.precision = TrainingPrecision::fp8_mixed;
  const std::int64_t rows = 2 * S * b;
  ModelSpec (*const model)(std::int64_t) = +[](std::int64_t layers) {
    ModelSpec result = small_llama(layers);
    result.experts = {.count = 8, .active = 2, .width = f};
    return result;
  };
  const std::int64_t all = kept_by_a_layer(setup, model);
  setup.recompute = Recompute::selective;
  setup.recompute_modules = "moe_act";
  EXPECT_EQ(kept_by_a_layer(setup, model), all - rows * f);
}

TEST(EngineLayers, RefuseModulesThatAStepHasNot) {
  TrainingSetup setup = core();
  setup.recompute = Recompute::selective;
  for (const char* module : {"moe_act", "moe", "shared_experts", "mla_up_proj"}) {
    setup.recompute_modules = module;
    EXPECT_THROW(static_cast<void>(generate_trace(small_llama(2), setup, CostModel(example_profile()), flat_cluster())),
                 InputError)
        << module;
  }
  setup.zero_stage = 3;
  setup.data_parallel = 2;
  setup.recompute_modules = "layernorm";
  EXPECT_THROW(static_cast<void>(generate_trace(small_llama(2), setup, CostModel(example_profile()), flat_cluster())),
               InputError);
  setup.recompute_modules = "mlp";  // which any layer can
  EXPECT_EQ(count_of(generate(small_llama(2), setup), "swiglu"), 4);
}

// One GPU has the same workspaces, start-up and layers.
TEST(EngineLayers, RunOnOneGpu) {
  const Trace trace = generate_trace(small_llama(2), core(), CostModel(example_profile()), {});
  trace.check_invariants();
  EXPECT_FALSE(trace.start_up.empty());
  EXPECT_EQ(count_of(trace, "rotary"), 4);  // queries and keys apart
}

std::map<std::string, std::int64_t> buffers_of(const Trace& trace) {
  std::map<std::string, std::int64_t> bytes;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.tensors.role[i] == TensorRole::buffer)
      bytes[std::string(trace.strings.text(trace.tensors.name[i]))] += trace.tensors.bytes[i].count();
  return bytes;
}

// One dummy gradient per shape of a weight: QKV's, which fc2 and the head have too, the output's, fc1's.
TEST(EngineLayers, WorkspacesAndDummiesStay) {
  TrainingSetup setup = core();
  setup.tensor_parallel = 2;
  setup.sequence_parallel = true;
  const auto bytes = buffers_of(generate(small_llama(3), setup));
  EXPECT_EQ(bytes.at("dummy_weight_gradient"), 2 * ((a + 2 * g) * D / 2 * h + h * a * D / 2 + 2 * f / 2 * h));
  EXPECT_EQ(bytes.at("head.in.gathered"), 2 * S * b * h);
  EXPECT_EQ(bytes.at("rotary.angles"), 4 * S * D);
  EXPECT_GT(bytes.at("workspace.transformer_engine"), 1 << 20);
  setup.framework = Framework::megatron_2022;
  EXPECT_EQ(buffers_of(generate(small_llama(3), setup)).count("dummy_weight_gradient"), 0U);
}

// Parameters and gradients lie in one buffer each, padded; a rank's moments come with the first update.
TEST(EngineLayers, StartUpBuildsBuffers) {
  TrainingSetup setup = core();
  setup.data_parallel = 2;
  const Trace trace = generate(small_llama(2), setup);
  std::int64_t parameters = 0, whole = 0, kept = 0, states = 0;
  std::map<std::uint32_t, std::int64_t> live;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    parameters += trace.tensors.role[i] == TensorRole::weight ? trace.tensors.bytes[i].count() / 2 : 0;
  for (const StartUpEvent& event : trace.start_up) {
    if (event.late && trace.tensors.role[index_of(event.tensor)] == TensorRole::optimizer_state)
      states += event.bytes.count();
    if (event.late) continue;
    event.allocates ? live[event.block] = event.bytes.count() : static_cast<std::int64_t>(live.erase(event.block));
    std::int64_t now = 0;
    for (const auto& [block, bytes] : live) now += bytes;
    whole = std::max(whole, now);
    kept = now;
  }
  EXPECT_NEAR(static_cast<double>(kept), 8.0 * static_cast<double>(parameters), 4096);    // 2 + 4 + master of a half
  EXPECT_NEAR(static_cast<double>(states), 4.0 * static_cast<double>(parameters), 4096);  // two moments of a half
  EXPECT_GE(whole, 8 * parameters);  // both copies of the parameters and the gradients
}

// The allocator's peak is that of the build, a first iteration and the step; the cache that the first two leave holds
// more than the step alone would reserve.
TEST(EngineLayers, CacheRemembersTheFirstIteration) {
  TrainingSetup setup = core();
  setup.micro_batch = 8;
  setup.data_parallel = 4;  // over one rank nothing is split
  Trace trace = generate(small_llama(4), setup);
  sim::AllocationStreamOptions options;
  const sim::AllocationStreamResult cold = sim::replay_allocation_stream(trace, options);
  EXPECT_TRUE(cold.started_up);
  options.repeat = true;
  EXPECT_TRUE(sim::replay_allocation_stream(trace, options).repeated_costs.empty());  // nothing is made anew
  trace.start_up.clear();
  const sim::AllocationStreamResult warm = sim::replay_allocation_stream(trace, options);
  EXPECT_FALSE(warm.started_up);
  const auto allocated = [](const sim::AllocationStreamResult& result) {
    return static_cast<double>(result.statistics.all().allocated_bytes.peak);
  };
  EXPECT_NEAR(allocated(cold), allocated(warm), 0.002 * allocated(warm));
  EXPECT_GT(cold.statistics.all().reserved_bytes.peak, warm.statistics.all().reserved_bytes.peak);
}

// Stages of 1F1B hold what their names still name: a gradient received, one sent, the last stage's input.
TEST(EngineLayers, NamesOfTheLoopHoldOneTensorMore) {
  TrainingSetup setup = core();
  setup.pipeline_parallel = 2;
  setup.gradient_accumulation = 9;
  const Trace trace = generate(small_llama(4), setup);
  std::map<TensorId, int> times;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action == MemoryAction::free_completed) continue;
    int& held = times[event.tensor];
    held += event.action == MemoryAction::allocate ? 1 : -1;
    EXPECT_TRUE(held == 0 || held == 1) << trace.strings.text(trace.tensors.name[index_of(event.tensor)]);
  }
  const auto most = [&](const char* name, std::int16_t device) {
    std::int64_t live = 0, result = 0;
    for (const MemoryEvent& event : trace.memory_events) {
      if (event.device != device || event.action == MemoryAction::free_completed) continue;
      if (trace.strings.text(trace.tensors.name[index_of(event.tensor)]) != name) continue;
      live += event.action == MemoryAction::allocate ? 1 : -1;
      result = std::max(result, live);
    }
    EXPECT_EQ(live, 0) << name;
    return result;
  };
  EXPECT_EQ(most("receive_backward", 0), 2);
  EXPECT_EQ(most("receive_forward", 1), 2);
}

// Megatron's "block" and torchtitan's every n-th layer: the rest keeps what it kept.
TEST(EngineLayers, SomeLayersAreRecomputed) {
  const auto kept = [](const TrainingSetup& setup) { return memory_of(generate(small_llama(4), setup)).kept; };
  TrainingSetup setup = core();
  const std::int64_t all = kept(setup), layer = kept_by_a_layer(setup), input = 2 * S * b * h;
  setup.recompute = Recompute::full;
  EXPECT_EQ(kept(setup), all - 4 * (layer - input));
  setup.recompute_layers = 1;
  EXPECT_EQ(kept(setup), all - (layer - input));
  setup.recompute_layers = 0;
  setup.recompute_every = 2;
  EXPECT_EQ(kept(setup), all - 2 * (layer - input));
}

// Attention runs again, and its row sums aren't kept; its result is, by the projection.
TEST(EngineLayers, AttentionCoreRunsAgain) {
  TrainingSetup setup = core();
  const std::int64_t all = kept_by_a_layer(setup);
  EXPECT_EQ(count_of(generate(small_llama(2), setup), "flash_attention"), 2);
  setup.recompute = Recompute::selective;
  EXPECT_EQ(kept_by_a_layer(setup), all - 4 * S * b * a);
  EXPECT_EQ(count_of(generate(small_llama(2), setup), "flash_attention"), 4);
}

// Only the block's input is kept of it, which attention's residual is.
TEST(EngineLayers, FeedForwardRunsAgain) {
  TrainingSetup setup = core();
  const std::int64_t all = kept_by_a_layer(setup);
  setup.recompute = Recompute::selective;
  setup.recompute_modules = "mlp";
  EXPECT_EQ(kept_by_a_layer(setup), all - 2 * S * b * h - 4 * S * b - 6 * S * b * f);
}

ModelSpec small_experts(std::int64_t layers) {
  ModelSpec model = small_llama(layers);
  model.experts = {.count = 8, .active = 2, .width = f};
  return model;
}

// GPT-OSS: sinks and the experts' biases have gradients of their own, in either framework. Megatron-core's experts add
// that of the second product one by one, that of the first is part of the product.
TEST(EngineLayers, ExpertsMayHaveBiasesAndHeadsSinks) {
  ModelSpec model = small_experts(2);
  model.experts.bias = model.qkv_bias = model.output_bias = model.attention_sinks = true;
  for (const Framework framework : {Framework::megatron, Framework::eager}) {
    TrainingSetup setup = core();
    setup.framework = framework;
    const Trace trace = generate(model, setup);
    EXPECT_EQ(count_of(trace, "sink_gradient"), 2);
    EXPECT_EQ(count_of(trace, "bias_gradient"), 2 * (framework == Framework::megatron ? 3 : 8));
    EXPECT_EQ(count_of(trace, "add_weighted_bias_backward"), framework == Framework::megatron ? 2 : 0);
  }
}

// The bias gradient of Transformer Engine's product in 16 bits is its epilogue, which cuBLASLt has older kernels for:
// of large products, the experts' first ones take longer. PyTorch's modules sum it apart, and layers without experts
// have it in their queries' product alone, where nothing measured says so.
TEST(EngineLayers, ProductsThatSumABiasGradientAreSlower) {
  HardwareProfile profile = example_profile();
  profile.gpu = hwprofiles::ProfileLibrary::standard().load_gpu("h100-sxm5-80gb");
  const CostModel cost(profile);
  const auto seconds = [&cost](bool has_biases, Framework framework) {
    ModelSpec model = small_experts(2);
    model.hidden = 2048;
    model.experts.width = 4096;
    model.experts.bias = has_biases;
    TrainingSetup setup = core();
    setup.sequence = 4096;
    setup.framework = framework;
    const Trace trace = generate_parallel_trace(model, setup, cost, flat_cluster());
    Picos sum{};
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.strings.text(trace.ops.name[i]).find("wgrad") != std::string::npos) sum += trace.ops.duration[i];
    return to_seconds(sum);
  };
  EXPECT_GT(seconds(true, Framework::megatron), 1.2 * seconds(false, Framework::megatron));
  EXPECT_NEAR(seconds(true, Framework::eager) / seconds(false, Framework::eager), 1, 0.02);
}

// What goes is made again before the backward that reads it: the activation of every row, the norm's result.
TEST(EngineLayers, ExpertsRecomputeTheirActivationAndNorm) {
  TrainingSetup setup = core();
  const std::int64_t rows = 2 * S * b, all = kept_by_a_layer(setup, small_experts);
  setup.recompute = Recompute::selective;
  setup.recompute_modules = "moe_act";
  EXPECT_EQ(kept_by_a_layer(setup, small_experts), all - 2 * rows * f);
  EXPECT_EQ(count_of(generate(small_experts(2), setup), "weighted_swiglu"), 4);
  setup.recompute_modules = "moe_act, layernorm";
  EXPECT_EQ(kept_by_a_layer(setup, small_experts), all - 2 * rows * f - 2 * S * b * h);
  setup.recompute_modules = "moe";
  EXPECT_LT(kept_by_a_layer(setup, small_experts), all - 2 * rows * (h + 3 * f) + 1);
  setup.recompute_modules = "moe_act, gearbox";
  EXPECT_THROW(static_cast<void>(kept_by_a_layer(setup, small_experts)), InputError);
}

// torchtitan: input, queries, values, gate, the last product and attention's result and row sums are kept of a layer
// with products q, k, v, out, gate, up, down.
TEST(EngineLayers, OperatorsKeepEverySecondProduct) {
  TrainingSetup setup{.micro_batch = b, .sequence = S, .recompute = Recompute::operators};
  EXPECT_EQ(kept_by_a_layer(setup), 2 * S * b * (h + a * D + g * D + f + h) + 2 * S * b * a * D + 4 * S * b * a);
  EXPECT_EQ(count_of(generate(small_llama(2), setup), "flash_attention"), 2);
  EXPECT_EQ(count_of(generate(small_llama(2), setup), "gemm"), 2 * (7 + 3) + 1);
}

TEST(EngineLayers, StatesHaveTypesOfTheirOwn) {
  TrainingSetup setup = core();
  EXPECT_EQ(setup.model_state_bytes_per_parameter(), 18);
  const std::int64_t before = memory_of(generate(small_llama(2), setup)).before;
  setup.main_gradients = StateType::bf16;
  setup.moments = StateType::bf16;
  setup.master_remainders = true;
  EXPECT_EQ(setup.model_state_bytes_per_parameter(), 10);
  const std::int64_t narrow = memory_of(generate(small_llama(2), setup)).before;
  setup = core();
  std::int64_t parameters = 0;
  const Trace trace = generate(small_llama(2), setup);
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    parameters += trace.tensors.role[i] == TensorRole::weight ? trace.tensors.bytes[i].count() / 2 : 0;
  EXPECT_EQ(before - narrow, 8 * parameters);
}

// Of each depth: its layer; the embedding and the layer's result, which norms read, with a number a row of three norms;
// both inputs side by side, what the head reads, and the logits.
TEST(EngineLayers, DepthsOfMultiTokenPredictionKeepALayerAndLogits) {
  const auto with = [](std::int64_t depths) {
    ModelSpec model = small_llama(2);
    model.mtp_layers = depths;
    return model;
  };
  const TrainingSetup setup = core();
  const std::int64_t n = S * b, V = small_llama(2).vocabulary;
  const Trace one = generate(with(1), setup), two = generate(with(2), setup);
  EXPECT_EQ(memory_of(two).kept - memory_of(one).kept,
            kept_by_a_layer(setup) + 2 * n * (h + h) + 2 * n * 2 * h + 2 * n * h + 2 * n * V + 3 * 4 * n);
  EXPECT_EQ(count_of(two, "embedding"), 3);
  EXPECT_EQ(count_of(two, "gemm"), count_of(generate(small_llama(2), setup), "gemm") + 2 * (4 + 2));
}

TEST(EngineLayers, TheHeadsStageHasTheEmbeddingForMultiTokenPrediction) {
  TrainingSetup setup = core();
  setup.pipeline_parallel = 2;
  setup.gradient_accumulation = 2;
  ModelSpec model = small_llama(2);
  EXPECT_EQ(count_of(generate(model, setup), "all_reduce_embedding"), 0);
  model.mtp_layers = 1;
  EXPECT_GT(count_of(generate(model, setup), "all_reduce_embedding"), 0);
}

TEST(EngineLayers, DepthsAreOfDecodersInMegatron) {
  ModelSpec model = small_llama(2);
  model.mtp_layers = 1;
  const auto generated = [&](const TrainingSetup& setup) {
    return generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  };
  EXPECT_NO_THROW(static_cast<void>(generated(core())));
  EXPECT_THROW(static_cast<void>(generated({.micro_batch = b, .sequence = S})), InputError);
  model.embedding_width = h / 2;
  EXPECT_THROW(static_cast<void>(generated(core())), InputError);
}

// Nemotron's layers of one part: the squares of what is above nought, times each row's probability, are one kernel.
TEST(EngineLayers, HoldMambaAndExpertsOfOnePartEach) {
  ModelSpec model = small_llama(3);
  model.activation = Activation::relu_squared;
  model.mamba = {.heads = 16, .head_dim = 32, .state = 16, .groups = 2, .convolution = 4, .chunk = 64};
  model.experts = {.count = 8, .active = 2, .width = 256, .latent_width = 128};
  model.blocks = {{.mixer = Mixer::mamba, .feed_forward = FeedForward::none},
                  {.mixer = Mixer::none, .feed_forward = FeedForward::experts},
                  {.feed_forward = FeedForward::none}};
  const Trace trace = generate(model, core());
  EXPECT_EQ(count_of(trace, "weighted_relu_squared"), 1);
  EXPECT_EQ(count_of(trace, "weighted_relu_squared_backward"), 1);
  EXPECT_EQ(count_of(trace, "chunk_scan"), 1);
  EXPECT_EQ(count_of(trace, "permute_tokens"), 1);
  EXPECT_EQ(count_of(trace, "flash_attention"), 1);
  // Norms of the mixers lie in their first products.
  EXPECT_EQ(count_of(trace, "rms_norm"), 3 + 1);
}

TEST(EngineLayers, RefuseWhatTheyCantExchange) {
  TrainingSetup setup = core();
  setup.context_parallel = 8;
  setup.context_exchange = ContextExchange::a2a;
  EXPECT_THROW(static_cast<void>(generate(small_llama(2), setup)), InputError);  // 4 key heads
  setup.context_parallel = 2;
  setup.framework = Framework::eager;
  EXPECT_THROW(static_cast<void>(generate(small_llama(2), setup)), InputError);
}

}  // namespace
}  // namespace spillway::models::engine_layers
