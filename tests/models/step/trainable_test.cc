// Steps that train a part of a model: bytes of weights, gradients and states, kernels, and what is not done.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/spec/model_part.h"
#include "models/spec/trainable.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::trainable {
namespace {

constexpr std::int64_t s = 64, b = 2, t = s * b, h = 256, f = 512, kv = 64, v = 1024, r = 8;
// Matrices of a layer: queries and output, keys and values, gate, up and down. Norms: two a layer, one at the end.
constexpr std::int64_t attention = 2 * h * h + 2 * h * kv, layer = attention + 3 * h * f;
constexpr std::int64_t angles = 2 * 2 * s * 32;

ModelSpec llama(std::int64_t layers) {
  ModelSpec model = find_model("llama-3-8b");  // with a head of its own
  model.layers = layers, model.hidden = h, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.feed_forward = f, model.vocabulary = v;
  return model;
}

Trace generate(const ModelSpec& model, TrainingSetup setup) {
  setup.sequence = s;
  setup.micro_batch = b;
  HardwareProfile profile = example_profile();
  profile.host.cores.value = 32;
  profile.host.cpu_adam_parameters_per_second = {.value = 1e9};
  Trace trace = generate_trace(model, setup, CostModel(profile), flat_cluster());
  trace.check_invariants();
  return trace;
}

TrainingSetup lora(TrainingSetup setup = {}) {
  setup.trainable = Trainable::lora;
  setup.lora_rank = r;
  return setup;
}

std::int64_t bytes_of(const Trace& trace, Phase phase, std::string_view name) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.phase[i] == phase && trace.strings.text(trace.ops.name[i]) == name) sum += trace.ops.bytes[i].count();
  return sum;
}

std::int64_t adapters_of_attention(std::int64_t rank) { return rank * (4 * h + 2 * h + 2 * (h + kv)) - 2 * rank * h; }

// A [r, in] and B [out, r] of queries [h, h], keys and values [kv, h], output [h, h].
TEST(Trainable, Counts) {
  const std::int64_t queries = r * (h + h), keys = r * (h + kv), output = r * (h + h),
                     whole = parameter_count(llama(2));
  EXPECT_EQ(adapters_of_attention(r), queries + 2 * keys + output);
  const auto counts = [](LoraTargets targets) {
    return trainable_counts(llama(2), resolve(lora({.lora_targets = targets}), llama(2)));
  };
  EXPECT_EQ(counts(LoraTargets::attention).trained, 2 * (queries + 2 * keys + output));
  EXPECT_EQ(counts(LoraTargets::attention).all, whole + 2 * (queries + 2 * keys + output));
  EXPECT_EQ(counts(LoraTargets::qkv).trained, 2 * (queries + 2 * keys));
  EXPECT_EQ(counts(LoraTargets::mlp).trained, 2 * 3 * r * (h + f));
  EXPECT_EQ(counts(LoraTargets::all_linear).trained, 2 * (queries + 2 * keys + output + 3 * r * (h + f)));
  // Frozen: the embedding and a layer with its two norms.
  const TrainableCounts frozen = trainable_counts(llama(2), resolve({.frozen_layers = 1}, llama(2)));
  EXPECT_EQ(frozen.all, whole);
  EXPECT_EQ(frozen.trained, whole - v * h - layer - 2 * h);
  // Mistral 7B at rank 16 on attention, as PEFT prints it.
  const ModelSpec mistral = find_model("mistral-7b");
  EXPECT_EQ(trainable_counts(mistral, resolve({.trainable = Trainable::lora}, mistral)).trained, 13'631'488);
}

// PEFT's modules_to_save: a copy, its moments in 16 bits as it is (torch.optim); the original stays beside it.
TEST(Trainable, SavedModulesAreCopies) {
  const auto saved = [](SavedModules modules) { return lora({.modules_to_save = modules}); };
  const auto held = [&](SavedModules modules) { return memory_of(generate(llama(2), saved(modules))).before; };
  const std::int64_t none = held(SavedModules::none);
  EXPECT_EQ(held(SavedModules::embedding) - none, (2 + 4) * v * h);
  EXPECT_EQ(held(SavedModules::head) - none, (2 + 4) * v * h);
  EXPECT_EQ(held(SavedModules::both) - none, 2 * (2 + 4) * v * h);
  // DeepSpeed has adapters and copies in the precision's own bytes: master weights and moments in fp32.
  const auto flat = [](SavedModules modules) {
    TrainingSetup setup = lora({.modules_to_save = modules});
    setup.framework = Framework::deepspeed, setup.data_parallel = 2, setup.zero_stage = 1;
    return memory_of(generate(llama(2), setup)).before;
  };
  EXPECT_NEAR(static_cast<double>(flat(SavedModules::head) - flat(SavedModules::none)), (2 + 12.0 / 2) * v * h, 1e4);
  const auto counts = [&](SavedModules modules) {
    return trainable_counts(llama(2), resolve(saved(modules), llama(2)));
  };
  EXPECT_EQ(counts(SavedModules::both).trained - counts(SavedModules::none).trained, 2 * v * h);
  EXPECT_EQ(counts(SavedModules::both).all - counts(SavedModules::none).all, 2 * v * h);
  // The head's gradient is a product more; the embedding's is a sum of rows.
  const auto flops = [&](SavedModules modules) {
    return flops_of(generate(llama(2), saved(modules)), Phase::backward);
  };
  EXPECT_EQ(flops(SavedModules::head) - flops(SavedModules::none), 2 * t * v * h);
}

TEST(Trainable, SavedModulesAreRefusedWhereTheyAreNone) {
  const auto refused = [](const TrainingSetup& setup, const ModelSpec& model) {
    EXPECT_THROW((void)resolve(setup, model), InputError);
  };
  refused({.modules_to_save = SavedModules::head}, llama(2));
  ModelSpec tied = llama(2);
  tied.tied_embeddings = true;
  refused(lora({.modules_to_save = SavedModules::embedding}), tied);
}

std::int64_t tiles(std::int64_t rows, std::int64_t columns) { return (rows + 127) / 128 * ((columns + 127) / 128); }

// n / 2 bytes and a fp32 scale per 64; a byte per 64 and a fp32 scale per 256 of these; n bytes and a fp32 scale a row,
// or one per 128 x 128.
TEST(Trainable, BytesOfStoredWeights) {
  const Parameter matrix{.name = "m.weight", .layer = 0, .rows = 4096, .columns = 1024};
  constexpr std::int64_t n = 4096 * 1024;
  EXPECT_EQ(stored_weight(BaseWeights::nf4, matrix).bytes(), n / 2 + 4 * n / 64);
  EXPECT_EQ(stored_weight(BaseWeights::nf4_double, matrix).bytes(), n / 2 + n / 64 + 4 * n / 64 / 256);
  EXPECT_EQ(stored_weight(BaseWeights::int8, matrix).bytes(), n + 4 * 4096);
  EXPECT_EQ(stored_weight(BaseWeights::fp8, matrix).bytes(), n + 4 * (4096 / 128) * (1024 / 128));
  const Parameter odd{.name = "m.weight", .layer = 0, .rows = 13, .columns = 5};
  EXPECT_EQ(stored_weight(BaseWeights::fp8, odd).bytes(), 65 + 4);
  EXPECT_EQ(stored_weight(BaseWeights::nf4_double, odd).bytes(), 33 + 2 + 4);
}

// Before the step: the base in bf16, adapters of 4 bytes with two moments of 4, no master weights. Their gradients come
// on top; nothing else has any.
TEST(Trainable, StateOfAdapters) {
  for (const std::int64_t layers : {1, 3}) {
    const ModelSpec model = llama(layers);
    const std::int64_t trained = layers * adapters_of_attention(r), base = 2 * parameter_count(model);
    for (const TrainingPrecision precision : {TrainingPrecision::bf16_mixed, TrainingPrecision::bf16}) {
      const HeldBytes held = memory_of(generate(model, lora({.precision = precision})));
      EXPECT_EQ(held.before, base + 12 * trained + angles);
      EXPECT_EQ(held.before_optimizer, base + 16 * trained + angles);
      EXPECT_EQ(held.left, 0);
    }
    // As the precision has other weights: master weights in fp32, or moments of two bytes.
    const TrainingSetup same = lora({.lora_weights = LoraWeights::same});
    EXPECT_EQ(memory_of(generate(model, same)).before, base + 14 * trained + angles);
    TrainingSetup pure = same;
    pure.precision = TrainingPrecision::bf16;
    EXPECT_EQ(memory_of(generate(model, pure)).before, base + 6 * trained + angles);
    EXPECT_EQ(memory_of(generate(model, pure)).before_optimizer, base + 8 * trained + angles);
  }
}

TEST(Trainable, StateOfPackedBases) {
  const std::int64_t layers = 2, matrices = layers * layer, trained = layers * adapters_of_attention(r);
  const std::int64_t rest = 2 * (2 * v * h + (2 * layers + 1) * h), others = rest + 12 * trained + angles;
  const auto before = [&](Trainable trainable, BaseWeights weights) {
    TrainingSetup setup = lora({.base_weights = weights});
    setup.trainable = trainable;
    return memory_of(generate(llama(layers), setup)).before;
  };
  EXPECT_EQ(before(Trainable::lora, BaseWeights::nf4), matrices / 2 + matrices / 16 + others);
  // Every matrix here has a multiple of 64 x 256 weights.
  EXPECT_EQ(before(Trainable::lora, BaseWeights::nf4_double), matrices / 2 + matrices / 64 + matrices / 4096 + others);
  EXPECT_EQ(before(Trainable::qlora, BaseWeights::same), before(Trainable::lora, BaseWeights::nf4_double));
  const std::int64_t rows = layers * (3 * h + 2 * kv + 2 * f);
  EXPECT_EQ(before(Trainable::lora, BaseWeights::int8), matrices + 4 * rows + others);
  const std::int64_t blocks = layers * (2 * tiles(h, h) + 2 * tiles(kv, h) + 3 * tiles(f, h));
  EXPECT_EQ(before(Trainable::lora, BaseWeights::fp8), matrices + 4 * blocks + others);
}

// Forward: the products and the adapters'. Backward: every product but those of the first layer that lead to its input
// alone (queries, keys, values) once for the input's gradient; the adapters' twice, but A's of the first layer once.
TEST(Trainable, FlopsOfAdapters) {
  const std::int64_t layers = 2;
  const ModelSpec model = llama(layers);
  const Trace trace = generate(model, lora());
  const std::int64_t products = matmul_parameter_count(model), adapters = layers * adapters_of_attention(r);
  const std::int64_t scores = layers * 2 * b * s * s * h;  // flash attention forward, causal
  EXPECT_EQ(flops_of(trace, Phase::forward), 2 * t * (products + adapters) + scores);
  const std::int64_t first = h * h + 2 * h * kv, first_a = 3 * r * h;
  EXPECT_EQ(flops_of(trace, Phase::backward), 2 * t * (products - first + 2 * adapters - first_a) + scores * 5 / 2);
  EXPECT_EQ(count_of(trace, "gemm_wgrad"), layers * 8);
  EXPECT_EQ(count_of(trace, "rms_norm_backward_weight"), 0);
  EXPECT_EQ(count_of(trace, "embedding_backward"), 0);
  EXPECT_EQ(count_of(trace, "rms_norm_backward"), 2 * layers);  // all but the very first, and the last
}

// Above the frozen layers all is as before; below there is nothing but the forward.
TEST(Trainable, FrozenLayersHaveNoBackward) {
  const ModelSpec model = llama(3);
  const Trace trace = generate(model, {.frozen_layers = 2});
  const std::int64_t scores = 2 * b * s * s * h, head = v * h;
  EXPECT_EQ(flops_of(trace, Phase::forward), 2 * t * (3 * layer + head) + 3 * scores);
  EXPECT_EQ(flops_of(trace, Phase::backward), 2 * t * 2 * (layer + head) + scores * 5 / 2);
  // The first norm's weight is trained, its input is nobody's.
  EXPECT_EQ(count_of(trace, "rms_norm_backward_weight"), 3);
  EXPECT_EQ(count_of(trace, "rms_norm_backward"), 2);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const bool is_below = trace.ops.layer[i] < 2;
    EXPECT_FALSE(is_below && trace.ops.phase[i] == Phase::backward);
  }
  // What a frozen layer computes is not kept: two more of them cost their weights alone.
  const HeldBytes held = memory_of(trace), fewer = memory_of(generate(llama(1), {.frozen_layers = 0}));
  const std::int64_t trained = layer + 2 * h + head + h;
  EXPECT_EQ(held.before, 2 * parameter_count(model) + 12 * trained + angles);
  EXPECT_LE(held.kept, fewer.kept);
  EXPECT_EQ(held.before_optimizer - held.before, 2 * trained);
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    const Trace again = generate(model, {.frozen_layers = 2, .recompute = recompute, .flash_attention = false});
    for (std::size_t i = 0; i < again.ops.size(); ++i) {
      const bool is_again = again.ops.phase[i] == Phase::recompute;
      EXPECT_TRUE(!is_again || again.ops.layer[i] == 2);
    }
    EXPECT_EQ(memory_of(again).left, 0);
  }
}

// A matrix is unpacked for each product: 7 a layer forward, again for the input's gradient, with full recompute a third
// time. A layer's copy is gone before the next one comes.
TEST(Trainable, PackedWeightsAreUnpackedForEachProduct) {
  const ModelSpec model = llama(2);
  TrainingSetup setup = lora({.base_weights = BaseWeights::nf4});
  const Trace trace = generate(model, setup);
  EXPECT_EQ(count_of(trace, "dequantise_nf4"), 2 * 7 + 2 * 7 - 3);
  EXPECT_EQ(count_of(trace, "dequantise_scales"), 0);
  // Reads 0.5 bytes a weight and a scale of 4 bytes per 64, writes 2.
  EXPECT_EQ(bytes_of(trace, Phase::forward, "dequantise_nf4"), 2 * layer * 2 + 2 * layer / 2 + 2 * layer / 16);
  setup.base_weights = BaseWeights::nf4_double;
  const Trace twice = generate(model, setup);
  EXPECT_EQ(count_of(twice, "dequantise_scales"), count_of(trace, "dequantise_nf4"));
  EXPECT_EQ(bytes_of(twice, Phase::forward, "dequantise_scales"), 2 * layer / 64 * 5 + 4 * 2 * layer / 64 / 256);
  setup.recompute = Recompute::full;
  // Of the first layer's recompute nothing is left out.
  EXPECT_EQ(count_of(generate(model, setup), "dequantise_nf4"), 2 * 7 + 2 * 7 + 2 * 7 - 3);
  std::int64_t live = 0, most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (!trace.strings.text(trace.tensors.name[index_of(event.tensor)]).ends_with(".unpacked")) continue;
    if (event.action == MemoryAction::free_completed) continue;
    live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
    most = std::max(most, live);
  }
  EXPECT_EQ(most, 2 * h * f);
}

// Beside everything in 16 bits, fp32 adapters read a copy of their input in fp32, one each, kept for A's gradient; what
// they would share in 16 bits (the norm's result for three of them) is kept for nobody.
TEST(Trainable, WideAdaptersKeepTheirInputsInFp32) {
  const auto kept = [](LoraWeights weights, TrainingPrecision precision) {
    const TrainingSetup setup =
        lora({.precision = precision, .lora_targets = LoraTargets::qkv, .lora_weights = weights});
    return memory_of(generate(llama(3), setup)).kept - memory_of(generate(llama(2), setup)).kept;
  };
  const std::int64_t narrow = kept(LoraWeights::same, TrainingPrecision::bf16);
  // Under autocast each keeps the cast of its cast.
  EXPECT_EQ(kept(LoraWeights::fp32, TrainingPrecision::bf16_mixed) - narrow, t * (3 * 2 * h - 2 * h));
  // Three inputs of 4 bytes instead of one of 2; A x in 4 bytes instead of 2, three times.
  EXPECT_EQ(kept(LoraWeights::fp32, TrainingPrecision::bf16) - narrow, t * (3 * 4 * h - 2 * h) + 3 * t * r * (4 - 2));
}

// A base loaded in fp32 under autocast: 4 bytes a parameter, and the cast of each matrix for its product, which stays
// for the input's gradient.
TEST(Trainable, AFrozenBaseMayBeInFp32) {
  const TrainingSetup narrow = lora({.precision = TrainingPrecision::bf16_mixed, .lora_weights = LoraWeights::fp32});
  TrainingSetup wide = narrow;
  wide.autocast = true;
  const ModelSpec model = llama(2);
  const Trace trace = generate(model, wide);
  EXPECT_EQ(memory_of(trace).before - memory_of(generate(model, narrow)).before, 2 * parameter_count(model));
  std::int64_t casts = 0;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.strings.text(trace.tensors.name[i]).ends_with("mlp.up.weight.cast"))
      casts += trace.tensors.bytes[i].count();
  EXPECT_EQ(casts, 2 * 2 * h * f);
  wide.base_weights = BaseWeights::nf4;
  EXPECT_THROW(generate(model, wide), InputError);
}

// Only trained parameters are reduced and updated.
TEST(Trainable, OnlyAdaptersAreReducedAndUpdated) {
  const ModelSpec model = llama(2);
  const std::int64_t trained = 2 * adapters_of_attention(r);
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const Trace trace = generate(model, lora({.data_parallel = 4, .zero_stage = stage}));
    std::int64_t reduced = 0;
    for (const Collective& each : trace.collectives)
      if (trace.strings.text(trace.ops.name[index_of(each.op)]).find("gradients") != std::string_view::npos)
        reduced += trace.ops.bytes[index_of(each.op)].count();
    EXPECT_EQ(reduced, 4 * trained) << stage;
    const HeldBytes held = memory_of(trace);
    EXPECT_EQ(held.left, 0) << stage;
    const std::int64_t base = 2 * parameter_count(model) / (stage == 3 ? 4 : 1);
    EXPECT_EQ(held.before, base + 4 * trained / (stage == 3 ? 4 : 1) + 8 * trained / (stage > 0 ? 4 : 1) + angles);
  }
  const Trace adam = generate(model, lora({.optimizer_form = OptimizerForm::fused}));
  EXPECT_EQ(bytes_of(adam, Phase::optimizer, "fused_adamw"), 28 * trained);
}

// bitsandbytes of 2023: behind each norm, and of the down projection. Attention's result and what the adapters read are
// kept anyway; the first layer's norm is asked for no gradient.
TEST(Trainable, PackedLayersMayKeepTheirInputs) {
  const auto held = [](bool keeps) {
    TrainingSetup setup = lora({.lora_targets = LoraTargets::qkv, .base_weights = BaseWeights::nf4});
    setup.keeps_packed_inputs = keeps;
    const Trace trace = generate(llama(2), setup);
    std::int64_t live = 0;
    for (const MemoryEvent& event : trace.memory_events) {
      if (event.anchor != OpId::none && trace.ops.phase[index_of(event.anchor)] == Phase::backward) break;
      if (trace.tensors.role[index_of(event.tensor)] != TensorRole::activation) continue;
      if (event.action != MemoryAction::free_completed)
        live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
    }
    return live;
  };
  EXPECT_EQ(held(true) - held(false), 2 * 2 * b * s * (h + f));
}

// ZeRO stage 3 shares out packed weights; their scales stay whole on every rank.
TEST(Trainable, PackedWeightsAreGatheredPacked) {
  const ModelSpec model = llama(2);
  const Trace trace = generate(model, lora({.base_weights = BaseWeights::nf4, .data_parallel = 4, .zero_stage = 3}));
  const std::int64_t trained = 2 * adapters_of_attention(r), rest = 2 * (2 * v * h + 5 * h);
  EXPECT_EQ(memory_of(trace).before, 2 * layer / 2 / 4 + 2 * layer / 16 + (rest + 12 * trained) / 4 + angles);
  std::int64_t gathered = 0;
  for (const Collective& each : trace.collectives)
    if (trace.strings.text(trace.ops.name[index_of(each.op)]) == "all_gather_weights")
      gathered += trace.ops.bytes[index_of(each.op)].count();
  // Layers twice, what lies outside once.
  const std::int64_t norms = 2 * 2 * 2 * h;
  EXPECT_EQ(gathered, 2 * (2 * layer / 2 + norms + 4 * trained) + 2 * (2 * v * h + h));
}

// Ranks hold 1 / t of every matrix and of one of its two adapters; the whole ones' gradients are partial sums.
TEST(Trainable, AdaptersSplitLikeTheirMatrices) {
  const ModelSpec model = llama(1);
  const TrainingSetup setup = resolve(lora({.sequence = s, .tensor_parallel = 2}), model);
  std::map<std::string, LocalParameter> locals;
  for (const LocalParameter& local : local_parameters(model, setup, {{0, 1}, true, true}))
    locals[local.shape.name] = local;
  const auto is = [&](const char* name, std::int64_t rows, std::int64_t columns, bool partial) {
    const LocalParameter& local = locals.at(std::string("layers.0.attention.") + name + ".weight");
    EXPECT_EQ(local.shape.rows, rows) << name;
    EXPECT_EQ(local.shape.columns, columns) << name;
    EXPECT_EQ(local.is_partial_sum, partial) << name;
    EXPECT_EQ(local.trains, !local.adapts.empty()) << name;
  };
  is("q.lora_a", r, h, true);
  is("q.lora_b", h / 2, r, false);
  is("v.lora_b", kv / 2, r, false);
  is("out.lora_a", r, h / 2, false);
  is("out.lora_b", h, r, true);
  is("out", h, h / 2, false);
  for (const bool sequence : {false, true}) {
    const Trace trace = generate(model, lora({.tensor_parallel = 2, .sequence_parallel = sequence}));
    EXPECT_EQ(memory_of(trace).left, 0);
    EXPECT_EQ(count_of(trace, "gemm_wgrad"), 8);
  }
}

// Nothing is left over, whatever else a step does.
TEST(Trainable, EverythingIsGivenBack) {
  ModelSpec experts = llama(2);
  experts.experts = {.count = 8, .active = 2, .width = 128, .shared_width = 128, .shared_gate = true};
  ModelSpec t5 = find_model("t5-small");
  t5.layers = t5.encoder_layers = 2;
  ModelSpec latent = find_model("deepseek-v2-lite");
  latent.layers = 2;
  for (const ModelSpec& model : {llama(2), experts, t5, latent, find_model("bert-base"), find_model("gpt2-small")}) {
    for (const LoraTargets targets : {LoraTargets::attention, LoraTargets::mlp, LoraTargets::all_linear}) {
      for (const TrainingSetup& setup :
           {TrainingSetup{},
            TrainingSetup{.precision = TrainingPrecision::bf16, .base_weights = BaseWeights::nf4_double},
            TrainingSetup{.recompute = Recompute::full},
            TrainingSetup{.gradient_accumulation = 2, .fused_kernels = false},
            TrainingSetup{.framework = Framework::megatron_2022, .zero_stage = 1},
            TrainingSetup{.data_parallel = 2, .zero_stage = 3}, TrainingSetup{.optimizer_device = StateDevice::cpu}}) {
        TrainingSetup used = lora(setup);
        used.lora_targets = targets;
        const Trace trace = generate(model, used);
        EXPECT_EQ(memory_of(trace).left, 0) << model.name;
        EXPECT_EQ(count_of(trace, "embedding_backward"), 0) << model.name;
        EXPECT_GT(flops_of(trace, Phase::backward), 0) << model.name;
      }
    }
    EXPECT_EQ(memory_of(generate(model, {.frozen_layers = 1})).left, 0) << model.name;
  }
}

TEST(Trainable, PipelinesOfAdapters) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    for (const Framework framework : {Framework::eager, Framework::megatron_2022}) {
      const Trace trace = generate(llama(4), lora({.gradient_accumulation = 4,
                                                   .framework = framework,
                                                   .pipeline_parallel = 2,
                                                   .pipeline_schedule = schedule}));
      EXPECT_GT(flops_of(trace, Phase::backward), 0);
      EXPECT_EQ(count_of(trace, "all_reduce_embedding"), 0);
    }
  }
}

TEST(Trainable, WhatIsNotModelledIsRefused) {
  const ModelSpec model = llama(2);
  EXPECT_THROW(resolve({.frozen_layers = 3}, model), InputError);
  EXPECT_THROW(resolve(lora({.frozen_layers = 2}), model), InputError);
  EXPECT_THROW(resolve({.base_weights = BaseWeights::nf4}, model), InputError);
  EXPECT_THROW(resolve({.trainable = Trainable::qlora, .base_weights = BaseWeights::int8}, model), InputError);
  EXPECT_THROW(resolve({.trainable = Trainable::lora, .lora_rank = h + 1}, model), InputError);
  EXPECT_THROW(resolve(lora({.precision = TrainingPrecision::fp8_mixed}), model), InputError);
  EXPECT_THROW(resolve({.frozen_layers = 1, .pipeline_parallel = 2}, model), InputError);
}

}  // namespace
}  // namespace spillway::models::trainable
