#include "models/step/parallel_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "models/session/communication.h"
#include "models/spec/model_part.h"
#include "tests/models/example_profile.h"

namespace spillway::models::parallel_trace {
namespace {

Cluster cluster() {
  return {8, [](NetworkCollective, Bytes bytes, const GroupShape& group) {
            return microseconds(10) + Picos(bytes.count() * 5 * (group.ranks > group.per_machine ? 4 : 1));
          }};
}

struct Shape {
  std::int64_t s, b, h, a;
};

ModelSpec gpt(const Shape& shape, std::int64_t layers) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = layers;
  model.hidden = shape.h;
  model.heads = model.kv_heads = shape.a;
  model.head_dim = shape.h / shape.a;
  model.feed_forward = 4 * shape.h;
  model.vocabulary = 1024;
  model.max_positions = shape.s;
  return model;
}

Trace generate(const ModelSpec& model, const TrainingSetup& setup) {
  Trace trace = generate_parallel_trace(model, setup, CostModel(example_profile()), cluster());
  trace.check_invariants();
  return trace;
}

// Bytes of activations rank 0 holds when it turns from forward to backward, at most.
std::int64_t held_activations(const Trace& trace) {
  std::int64_t live = 0, most = 0;
  Phase phase = Phase::unknown;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != 0) continue;
    const Phase now = event.anchor == OpId::none ? Phase::unknown : trace.ops.phase[index_of(event.anchor)];
    if (now == Phase::forward || now == Phase::backward) {
      if (now == Phase::backward && phase == Phase::forward) most = std::max(most, live);
      phase = now;
    }
    if (trace.tensors.role[index_of(event.tensor)] == TensorRole::activation)
      live += (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
  }
  return most;
}

// What one more layer per stage adds.
std::int64_t layer_activations(const Shape& shape, TrainingSetup setup) {
  setup.sequence = shape.s;
  setup.micro_batch = shape.b;
  setup.flash_attention = false;
  setup.dropout = 0.1;
  const std::int64_t parts = setup.pipeline_parallel * setup.pipeline_chunks;
  return held_activations(generate(gpt(shape, 2 * parts), setup)) -
         held_activations(generate(gpt(shape, parts), setup));
}

constexpr Shape shapes[] = {{64, 2, 256, 8}, {128, 1, 512, 16}, {96, 3, 384, 8}};

// Korthikanti et al. 2022, table 2, in 16 bits, with the LayerNorms' means and deviations (16 bytes per token, split
// with the sequence) apart: sbh (10 + 24/t + 5as/(ht)); with sequence parallelism sbh (34 + 5as/h) / t; with selective
// recompute 34 sbh / t; with full recompute 2 sbh. PyTorch's DTensor keeps the two gathered inputs whole.
TEST(ParallelActivations, PerLayerAreThePublishedForms) {
  for (const Shape& shape : shapes) {
    const auto [s, b, h, a] = shape;
    for (const Framework framework : {Framework::eager, Framework::megatron_2022}) {
      for (const std::int64_t t : {2, 4, 8}) {
        TrainingSetup setup{.framework = framework, .tensor_parallel = t};
        const std::int64_t square = 5 * a * s * s * b;
        EXPECT_EQ(layer_activations(shape, setup), 10 * s * b * h + (24 * s * b * h + square) / t + 16 * s * b);
        setup.sequence_parallel = true;
        const std::int64_t gathered = framework == Framework::eager ? 2 * 2 * s * b * h * (t - 1) / t : 0;
        EXPECT_EQ(layer_activations(shape, setup), (34 * s * b * h + square + 16 * s * b) / t + gathered);
        setup.recompute = Recompute::selective;
        EXPECT_EQ(layer_activations(shape, setup), (34 * s * b * h + 16 * s * b) / t + gathered);
        setup.recompute = Recompute::full;
        EXPECT_EQ(layer_activations(shape, setup), 2 * s * b * h / t);
        setup.sequence_parallel = false;
        EXPECT_EQ(layer_activations(shape, setup), 2 * s * b * h);
      }
    }
  }
}

// The same, section 4.2.3: the first stage holds p micro-batches of its layers under 1F1B; interleaved the equivalent
// of L (1 + (p - 1) / (p v)) layers, that is (v + 1) p - 1 chunks.
TEST(ParallelActivations, FirstStageUnderPipelineSchedules) {
  const Shape shape = shapes[0];
  const auto [s, b, h, a] = shape;
  const std::int64_t layer = 34 * s * b * h + 5 * a * s * s * b + 16 * s * b;
  for (const std::int64_t p : {2, 4}) {
    TrainingSetup setup{.gradient_accumulation = 4 * p, .framework = Framework::megatron_2022, .pipeline_parallel = p};
    EXPECT_EQ(layer_activations(shape, setup), p * layer);
    for (const std::int64_t v : {2, 3}) {
      setup.pipeline_chunks = v;
      EXPECT_EQ(layer_activations(shape, setup), ((v + 1) * p - 1) * layer);
    }
  }
}

struct State {
  std::int64_t weights = 0, gradients = 0, optimizer = 0;
};

// What rank 0 holds when its backward is over.
State model_state(const Trace& trace) {
  std::map<TensorRole, std::int64_t> live;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != 0) continue;
    if (event.anchor != OpId::none && trace.ops.phase[index_of(event.anchor)] == Phase::optimizer) break;
    const std::string_view name = trace.strings.text(trace.tensors.name[index_of(event.tensor)]);
    if (name.starts_with("optimizer.")) break;
    live[trace.tensors.role[index_of(event.tensor)]] +=
        (event.action == MemoryAction::allocate ? 1 : -1) * event.bytes.count();
  }
  return {live[TensorRole::weight], live[TensorRole::gradient], live[TensorRole::optimizer_state]};
}

std::int64_t local_count(const ModelSpec& model, const TrainingSetup& setup, const ModelPart& part) {
  std::int64_t sum = 0;
  for (const LocalParameter& parameter : local_parameters(model, setup, part)) sum += parameter.shape.elements();
  return sum;
}

// Rajbhandari et al. 2020 (ZeRO), figure 1, with mixed-precision Adam: 2 psi + 2 psi + 12 psi; stage 1 divides the 12,
// stage 2 also the gradients' 2, stage 3 all 16 by the number of ranks. PyTorch's FSDP, stage 3 here, has the 16 as 4
// of fp32 weights, 4 of gradients and 8 of moments.
TEST(ParallelState, BytesAreTheZeroForms) {
  const ModelSpec model = gpt(shapes[0], 3);
  const std::int64_t psi = parameter_count(model);
  for (const std::int64_t d : {2, 4, 8}) {
    for (const bool overlaps : {true, false}) {
      for (const std::int64_t stage : {0, 1, 2, 3}) {
        const TrainingSetup setup{.gradient_accumulation = 2,
                                  .data_parallel = d,
                                  .zero_stage = stage,
                                  .bucket_bytes = 1 << 18,
                                  .overlap_gradients = overlaps};
        const State state = model_state(generate(model, setup));
        EXPECT_EQ(state.weights, stage >= 3 ? 4 * psi / d : 2 * psi) << stage;
        EXPECT_EQ(state.gradients, stage >= 3 ? 4 * psi / d : 2 * psi / (stage >= 2 ? d : 1)) << stage;
        EXPECT_EQ(state.optimizer, stage >= 3 ? 8 * psi / d : 12 * psi / (stage >= 1 ? d : 1)) << stage;
      }
    }
  }
}

// Megatron-LM keeps gradients in fp32: 2 + 4 + 12 bytes; the vocabulary is padded to a multiple of 128 t.
TEST(ParallelState, MegatronHas18BytesPerLocalParameter) {
  const ModelSpec model = gpt(shapes[1], 4);
  const TrainingSetup setup{
      .gradient_accumulation = 4, .framework = Framework::megatron_2022, .tensor_parallel = 4, .pipeline_parallel = 2};
  const State state = model_state(generate(model, setup));
  const std::int64_t local = local_count(model, setup, {{0, 2}, true, false});
  EXPECT_EQ(state.weights, 2 * local);
  EXPECT_EQ(state.gradients, 4 * local);
  EXPECT_EQ(state.optimizer, 12 * local);
}

// Megatron-LM of 2021 has them in 16 bits: 2 + 2 + 12.
TEST(ParallelState, Megatron2021Has16BytesPerLocalParameter) {
  const ModelSpec model = gpt(shapes[1], 4);
  const TrainingSetup setup{
      .gradient_accumulation = 4, .framework = Framework::megatron_2021, .tensor_parallel = 4, .pipeline_parallel = 2};
  const State state = model_state(generate(model, setup));
  const std::int64_t local = local_count(model, setup, {{0, 2}, true, false});
  EXPECT_EQ(state.weights, 2 * local);
  EXPECT_EQ(state.gradients, 2 * local);
  EXPECT_EQ(state.optimizer, 12 * local);
}

std::int64_t count_ops(const Trace& trace, std::string_view name) {
  std::int64_t count = 0;
  for (const StringId id : trace.ops.name) count += trace.strings.text(id) == name;
  return count;
}

// Edges from a weight gradient's product to an all-reduce of the tensor group.
std::int64_t waits_for_weight_gradients(const Trace& trace) {
  const auto starts = [&](OpId op, std::string_view name) {
    return trace.strings.text(trace.ops.name[index_of(op)]).starts_with(name);
  };
  std::int64_t count = 0;
  for (const Edge& edge : trace.edges)
    count += starts(edge.from, "gemm_wgrad") && trace.strings.text(trace.ops.name[index_of(edge.to)]) == "all_reduce";
  return count;
}

// With a barrier no stage scales its gradients before the norms of all are known.
TEST(ParallelStages, UpdatesWaitForTheSlowestNorm) {
  ModelSpec model = gpt(shapes[0], 4);
  model.tied_embeddings = false;  // the first and last stage would meet
  for (const bool barrier : {true, false}) {
    const Trace trace = generate(model, {.gradient_accumulation = 4,
                                         .framework = Framework::megatron,
                                         .pipeline_parallel = 4,
                                         .step_barrier = barrier});
    std::set<std::uint32_t> waiting;  // ranks
    for (const Edge& edge : trace.edges) {
      const auto lane = [&](OpId op) -> const Lane& { return trace.lanes[index_of(trace.ops.lane[index_of(op)])]; };
      if (trace.strings.text(lane(edge.from).name) == stages_lane &&
          trace.strings.text(trace.ops.name[index_of(edge.to)]) == "foreach_mul_")
        waiting.insert(lane(edge.to).rank);
    }
    EXPECT_EQ(waiting.size(), barrier ? 4U : 0U);
  }
}

// Megatron-LM overlaps the input gradient's all-reduce with the weight gradient since September 2021 and adds weight
// gradients up inside their products since February 2022; before, neither.
TEST(ParallelMegatron, OverlapsAndFusesSince2022) {
  const ModelSpec model = gpt(shapes[0], 2);
  TrainingSetup setup{.gradient_accumulation = 2, .framework = Framework::megatron_2022, .tensor_parallel = 2};
  const Trace now = generate(model, setup);
  setup.framework = Framework::megatron_2021;
  const Trace then = generate(model, setup);
  EXPECT_EQ(waits_for_weight_gradients(now), 0);
  EXPECT_GT(waits_for_weight_gradients(then), 0);
  EXPECT_GT(count_ops(now, "gemm_wgrad_accumulate"), 0);
  EXPECT_EQ(count_ops(then, "gemm_wgrad_accumulate"), 0);
  // From the second micro-batch on every parameter's gradient is added; the tied embedding's, used twice, in both.
  const auto parameters = static_cast<std::int64_t>(local_parameters(model, setup, {{0, 2}, true, true}).size());
  EXPECT_EQ(count_ops(then, "accumulate_gradient"), parameters + 2);
}

// After the backward Megatron-LM divides all gradients, even by one replica, and reduces them in one piece; in fp16 the
// optimizer takes the loss scale off, and in 2021 made fp32 gradients first.
TEST(ParallelMegatron, ReducesAllGradientsAtOnce) {
  const ModelSpec model = gpt(shapes[0], 2);
  for (const Framework framework : {Framework::megatron_2022, Framework::megatron_2021}) {
    for (const std::int64_t d : {1, 2}) {
      const Trace trace = generate(model, {.precision = TrainingPrecision::fp16_mixed,
                                           .framework = framework,
                                           .data_parallel = d,
                                           .bucket_bytes = 1 << 18,
                                           .overlap_gradients = false});
      const bool is_old = framework == Framework::megatron_2021;
      EXPECT_EQ(count_ops(trace, "divide_gradients"), 1);
      EXPECT_EQ(count_ops(trace, "flatten_gradients"), is_old ? 1 : 0);
      EXPECT_EQ(count_ops(trace, "all_reduce_gradients"), d - 1);
      EXPECT_GT(count_ops(trace, "foreach_unscale_"), 0);
    }
  }
}

// Gradients that PyTorch's own buckets reduce after the backward wait for its last kernel, not for their own alone.
TEST(ParallelGradients, ReducedAfterTheBackwardWaitForAllOfIt) {
  const ModelSpec model = gpt(shapes[0], 2);
  const Trace trace = generate(model, {.data_parallel = 2, .bucket_bytes = 1 << 18, .overlap_gradients = false});
  OpId last = OpId::none;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel && trace.ops.phase[i] == Phase::backward)
      last = OpId{static_cast<std::uint32_t>(i)};
  std::int64_t waits = 0;
  for (const Edge& edge : trace.edges)
    waits += edge.from == last && trace.strings.text(trace.ops.name[index_of(edge.to)]) == "all_reduce_gradients";
  EXPECT_EQ(waits, count_ops(trace, "all_reduce_gradients"));
  EXPECT_GT(waits, 1);
}

// Ranks of a tensor group together hold every split matrix once; what is whole they hold t times.
TEST(ParallelState, TensorSplitCoversTheModel) {
  const ModelSpec llama = find_model("llama-3.2-1b");
  const TrainingSetup split = resolve({.tensor_parallel = 8}, llama);
  const std::int64_t norms = (2 * llama.layers + 1) * llama.hidden;
  EXPECT_EQ(8 * local_count(llama, split, {{0, llama.layers}, true, true}), parameter_count(llama) + 7 * norms);
}

// Optimizer state, master weights apart: SGD none or one moment; Adafactor a row and a column per matrix, one moment
// per vector; 8-bit AdamW two bytes and two fp32 scales per 256, below 4,096 elements 8 bytes; Muon one moment for the
// matrices inside layers, two for the rest.
TEST(ParallelState, OfEveryOptimizer) {
  const ModelSpec model = gpt(shapes[0], 2);
  std::int64_t psi = 0, factors = 0, blockwise = 0, muon = 0;
  for (const Parameter& parameter : parameters(model)) {
    const std::int64_t n = parameter.elements();
    const bool matrix = parameter.columns > 1;
    psi += n;
    factors += 4 * (matrix ? parameter.rows + parameter.columns : n);
    blockwise += n < 4096 ? 8 * n : 2 * n + 8 * ((n + 255) / 256);
    muon += matrix && parameter.layer >= 0 ? 4 * n : 8 * n;
  }
  const std::map<OptimizerKind, std::int64_t> expected = {
      {OptimizerKind::sgd, 0},         {OptimizerKind::sgd_momentum, 4 * psi}, {OptimizerKind::adam, 8 * psi},
      {OptimizerKind::adamw, 8 * psi}, {OptimizerKind::adafactor, factors},    {OptimizerKind::adamw_8bit, blockwise},
      {OptimizerKind::muon, muon},
  };
  for (const auto& [optimizer, bytes] : expected) {
    const Trace trace = generate(model, {.optimizer = optimizer});
    EXPECT_EQ(model_state(trace).optimizer, 4 * psi + bytes) << to_string(optimizer);
    std::int64_t updates = 0;  // every weight is written by the optimizer
    for (const Use& use : trace.uses)
      if (use.access == Access::write && trace.ops.phase[index_of(use.op)] == Phase::optimizer &&
          trace.tensors.role[index_of(use.tensor)] == TensorRole::weight)
        ++updates;
    EXPECT_GE(updates, static_cast<std::int64_t>(parameters(model).size())) << to_string(optimizer);
  }
  // Its small tensors keep 4 bytes a moment where everything else has 2; no master weights.
  const Trace narrow = generate(model, {.precision = TrainingPrecision::bf16, .optimizer = OptimizerKind::adamw_8bit});
  EXPECT_EQ(model_state(narrow).optimizer, blockwise);
}

std::int64_t optimizer_flops(const ModelSpec& model, const TrainingSetup& setup) {
  const Trace trace = generate(model, setup);
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.phase[i] == Phase::optimizer) counted += trace.ops.flops[i].count();
  return counted;
}

// Five Newton-Schulz steps of three products: 2 m n m + 2 m m m + 2 m m n flops each, m <= n. Every `ranks`-th matrix.
std::int64_t newton_schulz_flops(const ModelSpec& model, std::int64_t ranks) {
  std::int64_t flops = 0, dense = 0, experts = 0;
  for (const Parameter& parameter : parameters(model)) {
    if (parameter.columns == 1 || parameter.layer < 0) continue;
    const std::int64_t matrices = std::max<std::int64_t>(1, parameter.experts), rows = parameter.rows / matrices;
    const std::int64_t m = std::min(rows, parameter.columns), n = std::max(rows, parameter.columns);
    std::int64_t& before = parameter.experts > 0 ? experts : dense;
    for (std::int64_t i = 0; i < matrices; ++i)
      if (before++ % ranks == 0) flops += 5 * (4 * m * m * n + 2 * m * m * m);
  }
  return flops;
}

TEST(ParallelState, MuonFlops) {
  const ModelSpec dense = gpt(shapes[0], 2), experts = find_model("olmoe-1b-7b");
  for (const ModelSpec* model : {&dense, &experts}) {
    EXPECT_EQ(optimizer_flops(*model, {.optimizer = OptimizerKind::muon}), newton_schulz_flops(*model, 1));
    for (const std::int64_t ranks : {2, 3})
      EXPECT_EQ(optimizer_flops(*model, {.optimizer = OptimizerKind::muon, .data_parallel = ranks, .zero_stage = 1}),
                newton_schulz_flops(*model, ranks))
          << ranks;
  }
}

// fp8 keeps the inputs of linear layers in one byte: four of them, 2 x (h + h + h + 4h) bytes per token become half.
TEST(ParallelActivations, Fp8KeepsInputsOfLinearLayersInOneByte) {
  const auto [s, b, h, a] = shapes[0];
  const std::int64_t wide = layer_activations(shapes[0], {});
  const std::int64_t narrow = layer_activations(shapes[0], {.precision = TrainingPrecision::fp8_mixed});
  EXPECT_EQ(wide, 34 * s * b * h + 5 * a * s * s * b + 16 * s * b);
  // The context is kept by the output projection alone, the norms' results by nothing else, GELU's result too.
  EXPECT_EQ(wide - narrow, (h + h + h + 4 * h) * s * b);
  EXPECT_EQ(layer_activations(shapes[0], {.precision = TrainingPrecision::fp16_mixed}), wide);
}

std::map<std::string, std::int64_t> collectives(const Trace& trace) {
  std::map<std::string, std::int64_t> counts;
  for (const Collective& collective : trace.collectives)
    ++counts[std::string(trace.strings.text(collective.group)) + " " + std::string(to_string(collective.kind))];
  return counts;
}

// Shoeybi et al. 2019: two all-reduces per layer in each direction, one more for the embedding forwards and for the
// head's input gradient, three of a number per token in the loss. With sequence parallelism each is a reduce-scatter
// or an all-gather; Megatron-LM gathers the inputs of the two column-split layers once more backwards.
TEST(ParallelCollectives, OfATensorGroup) {
  const std::int64_t layers = 3;
  const ModelSpec model = gpt(shapes[0], layers);
  TrainingSetup setup{.tensor_parallel = 4};
  EXPECT_EQ(collectives(generate(model, setup))["tensor all_reduce"], 4 * layers + 2 + 3);
  setup.sequence_parallel = true;
  const auto counts = collectives(generate(model, setup));
  EXPECT_EQ(counts.at("tensor reduce_scatter"), 4 * layers + 1);  // head: input gradient
  EXPECT_EQ(counts.at("tensor all_gather"), 4 * layers + 1 + 1);  // head, split of the embedding backwards
  EXPECT_EQ(counts.at("tensor all_reduce"), 1 + 3 + 1);           // embedding, loss, gradients of norms
  setup.framework = Framework::megatron_2022;
  EXPECT_EQ(collectives(generate(model, setup)).at("tensor all_gather"), (4 + 2) * layers + 2 + 1);
}

// Every transfer between stages is sent and received once per micro-batch and direction.
TEST(ParallelCollectives, BetweenStages) {
  const ModelSpec model = gpt(shapes[0], 8);
  for (const std::int64_t v : {1, 2}) {
    const TrainingSetup setup{.gradient_accumulation = 8, .pipeline_parallel = 4, .pipeline_chunks = v};
    const auto counts = collectives(generate(model, setup));
    EXPECT_EQ(counts.at("send send"), 2 * 8 * (4 * v - 1));
    EXPECT_EQ(counts.at("receive receive"), 2 * 8 * (4 * v - 1));
  }
}

// Bytes reduced per step: every gradient once (ZeRO 0 and 1), or in every micro-batch (2 and 3).
TEST(ParallelCollectives, GradientBytes) {
  const ModelSpec model = gpt(shapes[0], 3);
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    const TrainingSetup setup{
        .gradient_accumulation = 3, .data_parallel = 4, .zero_stage = stage, .bucket_bytes = 1 << 18};
    const Trace trace = generate(model, setup);
    std::int64_t reduced = 0, gathered = 0;
    for (const Collective& collective : trace.collectives) {
      const std::int64_t bytes = trace.ops.bytes[index_of(collective.op)].count();
      if (collective.kind == CollectiveKind::all_gather)
        gathered += bytes;
      else
        reduced += bytes;
    }
    const std::int64_t psi = parameter_count(model), tied = model.vocabulary * model.hidden;
    EXPECT_EQ(reduced, 2 * (stage >= 2 ? 3 * (psi + tied) : psi)) << stage;
    EXPECT_EQ(gathered, stage == 1 || stage == 2 ? 2 * psi : gathered) << stage;
  }
}

// What a framework reduces at once, unless a size is given: PyTorch's DDP 25 MiB, Megatron-core 40 million gradients of
// 4 bytes, FSDP a layer.
TEST(ParallelCollectives, BucketsAreTheFrameworks) {
  ModelSpec model = gpt({64, 2, 1024, 8}, 8);  // a layer: 12.6 million
  model.tied_embeddings = true;
  const auto psi = static_cast<double>(parameter_count(model));
  const auto reduced = [&](TrainingSetup setup) {
    std::vector<std::int64_t> bytes;
    const Trace trace = generate(model, setup);
    for (const Collective& collective : trace.collectives)
      if (trace.strings.text(trace.ops.name[index_of(collective.op)]).ends_with("_gradients"))
        bytes.push_back(collective.bytes.count());
    return bytes;
  };
  const auto ddp = reduced({.data_parallel = 4});
  EXPECT_NEAR(static_cast<double>(ddp.size()), 2 * psi / (25 << 20), 4);
  const auto core = reduced({.framework = Framework::megatron, .data_parallel = 4});
  EXPECT_EQ(core.size(), static_cast<std::size_t>(std::ceil(psi / 40e6)));
  EXPECT_GE(core.front(), 160'000'000);
  EXPECT_LT(core.front(), 160'000'000 + 4 * 4 * 1024 * 1024 + 1);
  EXPECT_EQ(reduced({.framework = Framework::megatron, .data_parallel = 64}).size(), 2U);
  EXPECT_EQ(reduced({.framework = Framework::megatron, .data_parallel = 4, .overlap_gradients = false}).size(), 1U);
  EXPECT_EQ(reduced({.framework = Framework::megatron, .data_parallel = 4, .bucket_bytes = 1 << 30}).size(), 1U);
  for (const std::int64_t stage : {2, 3}) {  // eight layers, and what is outside of them
    const std::size_t units = reduced({.data_parallel = 4, .zero_stage = stage}).size();
    EXPECT_EQ(units, 9U) << stage;
  }
}

// A copy of a micro-batch differs from its neighbour in ids alone: all of them have the same kernels, flops and uses.
// FSDP on one communicator: with BACKWARD_PRE a layer's gather comes before the reduction of the layer above, with
// BACKWARD_POST after it. Every layer's gradients are reduced apart, however large a bucket may be.
TEST(ParallelCollectives, LatePrefetchGathersAfterReducing) {
  const std::int64_t layers = 5;
  for (const bool late : {false, true}) {
    const Trace trace =
        generate(gpt({64, 2, 256, 8}, layers),
                 {.data_parallel = 4, .zero_stage = 3, .bucket_bytes = std::int64_t{1} << 40, .late_prefetch = late});
    std::string order;
    for (const Collective& collective : trace.collectives) {
      const std::string_view name = trace.strings.text(trace.ops.name[index_of(collective.op)]);
      order += name == "all_gather_weights" ? 'g' : 'r';
    }
    // Forwards what lies outside the layers, then each layer. Backwards the head's gradients are reduced with the last
    // layer's, and the embedding's at the end.
    std::string wanted(static_cast<std::size_t>(layers) + 1, 'g');
    wanted += late ? "g" : "gg";
    for (std::int64_t layer = layers - 1; layer >= 0; --layer)
      wanted += std::string("r") + (layer > (late ? 0 : 1) ? "g" : "");
    EXPECT_EQ(order, wanted + "r") << (late ? "late" : "early");
  }
}

// Cast before they are reduced, gradients cross the network in twice the bytes and are kept in 4 bytes.
TEST(ParallelCollectives, Fp32ReductionMovesTwice) {
  const auto of = [](bool fp32) {
    std::int64_t sum = 0;
    const Trace trace =
        generate(gpt({64, 2, 256, 8}, 3), {.data_parallel = 4, .zero_stage = 3, .fp32_reduction = fp32});
    for (const Collective& collective : trace.collectives)
      if (trace.strings.text(trace.ops.name[index_of(collective.op)]) == "reduce_scatter_gradients")
        sum += collective.bytes.count();
    return sum;
  };
  EXPECT_EQ(of(true), 2 * of(false));
  EXPECT_THROW(generate(gpt({64, 2, 256, 8}, 3), {.data_parallel = 4, .fp32_reduction = true}), InputError);
}

// Reduced in the last micro-batch alone, gradients cross the network once a step, and those of the whole model are in
// memory when its backward begins, in fp32 if they are reduced so.
TEST(ParallelCollectives, LateReductionKeepsWholeGradients) {
  struct Outcome {
    std::int64_t sent = 0, kept = 0;
  };
  ModelSpec model = gpt({64, 2, 256, 8}, 3);
  model.tied_embeddings = false;  // a tied one is reduced once a use
  const auto of = [&](bool late, bool fp32, TrainingPrecision precision) {
    Outcome outcome;
    const Trace trace = generate(model, {.gradient_accumulation = 3,
                                         .precision = precision,
                                         .data_parallel = 4,
                                         .zero_stage = 3,
                                         .fp32_reduction = fp32,
                                         .late_reduction = late});
    for (const Collective& collective : trace.collectives)
      if (trace.strings.text(trace.ops.name[index_of(collective.op)]) == "reduce_scatter_gradients")
        outcome.sent += collective.bytes.count();
    for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
      const std::string name(trace.strings.text(trace.tensors.name[i]));
      if (name.ends_with(".grad.whole")) outcome.kept += trace.tensors.bytes[i].count();
    }
    return outcome;
  };
  for (const TrainingPrecision precision : {TrainingPrecision::bf16_mixed, TrainingPrecision::bf16}) {
    const Outcome each = of(false, true, precision), late = of(true, true, precision);
    EXPECT_EQ(each.sent, 3 * late.sent);
    EXPECT_EQ(each.kept, 0);
    EXPECT_EQ(late.kept, late.sent);  // every parameter once, in the fp32 that is sent
    EXPECT_EQ(of(false, false, precision).sent, 3 * of(true, false, precision).sent);
    EXPECT_EQ(late.sent, 2 * of(true, false, precision).sent);
  }
  EXPECT_THROW(generate(model, {.data_parallel = 4, .zero_stage = 1, .late_reduction = true}), InputError);
}

// With shard_groups what is sharded is gathered and reduced within a group, kept whole times as often, and shares alone
// cross from group to group.
TEST(ParallelCollectives, GroupsShareOutACopyEach) {
  struct Sums {
    std::int64_t gathered = 0, scattered = 0, over = 0, most_ranks = 0, states = 0;
  };
  const ModelSpec model = gpt({64, 2, 256, 8}, 3);
  for (const std::int64_t stage : {1, 2, 3}) {
    const auto of = [&](std::int64_t replicas, std::int64_t groups) {
      Sums sums;
      const Trace trace = generate(
          model, {.gradient_accumulation = 2, .data_parallel = replicas, .zero_stage = stage, .shard_groups = groups});
      for (const Collective& collective : trace.collectives) {
        const std::int64_t bytes = collective.bytes.count();
        if (trace.strings.text(collective.group) == "data copies") {
          EXPECT_EQ(collective.kind, CollectiveKind::all_reduce);
          EXPECT_EQ(collective.group_size, groups);
          sums.over += bytes;
          continue;
        }
        sums.most_ranks = std::max<std::int64_t>(sums.most_ranks, collective.group_size);
        (collective.kind == CollectiveKind::all_gather ? sums.gathered : sums.scattered) += bytes;
      }
      for (std::size_t i = 0; i < trace.tensors.size(); ++i)
        if (trace.tensors.role[i] == TensorRole::optimizer_state) sums.states += trace.tensors.bytes[i].count();
      return sums;
    };
    const Sums machine = of(4, 1), grouped = of(16, 4), all = of(16, 1);
    EXPECT_EQ(machine.over, 0);
    EXPECT_EQ(grouped.most_ranks, 4);
    EXPECT_EQ(grouped.gathered, machine.gathered) << stage;
    EXPECT_EQ(grouped.scattered, machine.scattered) << stage;
    EXPECT_EQ(grouped.states, machine.states) << stage;
    EXPECT_LT(all.states, grouped.states / 3) << stage;
    EXPECT_NEAR(static_cast<double>(grouped.over), static_cast<double>(machine.scattered) / 4,
                static_cast<double>(machine.scattered) / 1000)
        << stage;  // a share of each, rounded up
  }
}

TEST(ParallelCollectives, GroupsAreDivisorsOfTheReplicas) {
  const ModelSpec model = gpt({64, 2, 256, 8}, 3);
  EXPECT_THROW(generate(model, {.data_parallel = 4, .zero_stage = 3, .shard_groups = 3}), InputError);
  EXPECT_THROW(generate(model, {.data_parallel = 4, .zero_stage = 3, .shard_groups = 4}), InputError);
  EXPECT_THROW(generate(model, {.data_parallel = 4, .zero_stage = 3, .shard_groups = 0}), InputError);
  EXPECT_EQ(resolve({.data_parallel = 4, .shard_groups = 4}, model).shard_groups, 1);  // nothing is shared out
}

TEST(TraceAssembly, MicroBatchesAreAlike) {
  const ModelSpec model = gpt(shapes[0], 4);
  const TrainingSetup setup{.gradient_accumulation = 9, .tensor_parallel = 2, .pipeline_parallel = 2};
  const Trace trace = generate(model, setup);
  std::map<std::int64_t, std::int64_t> flops;
  std::map<std::uint16_t, std::int64_t> ops;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    flops[trace.ops.micro_batch[i]] += trace.ops.flops[i].count();
    ++ops[trace.ops.micro_batch[i]];
  }
  ASSERT_EQ(ops.size(), 10u);  // and what belongs to none
  for (std::uint16_t m = 1; m < 9; ++m) {
    EXPECT_EQ(flops[m], flops[0]);
    EXPECT_EQ(ops[m], ops[1]) << m;
  }
  // Each tensor is allocated once, freed at most once, and used only while it is there.
  std::vector<int> live(trace.tensors.size(), 0);
  for (const MemoryEvent& event : trace.memory_events) {
    int& state = live[index_of(event.tensor)];
    EXPECT_EQ(state, event.action == MemoryAction::allocate ? 0 : 1);
    ++state;
  }
  for (const Edge& edge : trace.edges) EXPECT_NE(edge.from, edge.to);
}

TEST(ParallelTrace, SeveralGpusNeedATimer) {
  EXPECT_THROW(static_cast<void>(generate_parallel_trace(gpt(shapes[0], 2), {.tensor_parallel = 2},
                                                         CostModel(example_profile()), {})),
               InputError);
}

}  // namespace
}  // namespace spillway::models::parallel_trace
