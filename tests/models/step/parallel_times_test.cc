// What travels and what hides it: tokens by dispatcher, gathered keys, collectives cut up beside products, graphs.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "models/cost/token_exchange.h"
#include "models/step/parallel_trace.h"
#include "models/step/trace_generator.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::parallel_times {
namespace {

constexpr std::int64_t s = 64, b = 2, h = 256, e = 8, k = 2;

ModelSpec experts() {
  ModelSpec model = find_model("mixtral-8x7b");
  model.layers = 1, model.hidden = h, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1024, model.feed_forward = 512;
  model.experts = {.count = e, .active = k, .width = 512};
  return model;
}

Trace generate(const ModelSpec& model, TrainingSetup setup) {
  setup.sequence = s;
  setup.micro_batch = b;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

std::vector<std::size_t> ops_named(const Trace& trace, std::string_view name) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.strings.text(trace.ops.name[i]) == name) found.push_back(i);
  return found;
}

Picos time_of(const Trace& trace, std::string_view name) {
  Picos sum{};
  for (const std::size_t i : ops_named(trace, name)) sum += trace.ops.duration[i];
  return sum;
}

TrainingSetup megatron(TrainingSetup setup) {
  setup.framework = Framework::megatron;
  return setup;
}

// Four exchanges of b s k rows of h 2-byte numbers, whatever carries them; what does knows what it carries.
TEST(ExpertExchange, TellsTheTimerWhatTravels) {
  for (const ExpertDispatcher dispatcher : {ExpertDispatcher::nccl, ExpertDispatcher::hybridep}) {
    std::vector<TokenRoute> routes;
    const Cluster cluster{8, [&](NetworkCollective, Bytes bytes, const GroupShape& group) {
                            if (group.tokens.chosen > 0) {
                              routes.push_back(group.tokens);
                              EXPECT_EQ(bytes.count(), b * s * k * h * 2);
                            }
                            return Picos(1000);
                          }};
    TrainingSetup setup = megatron({.data_parallel = 4, .expert_parallel = 4, .expert_dispatcher = dispatcher});
    setup.sequence = s, setup.micro_batch = b;
    generate_trace(experts(), setup, CostModel(example_profile()), cluster).check_invariants();
    ASSERT_EQ(routes.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(routes[i].dispatcher, dispatcher);
      EXPECT_EQ(routes[i].chosen, k);
      EXPECT_EQ(routes[i].combines, i == 1 || i == 3);  // backwards the combine's is a dispatch
    }
  }
}

// A token arrives once on each of D(e, k) ranks, and is copied to its rows there; nothing is sorted again.
TEST(ExpertExchange, CopiesTokensWhereTheyArrive) {
  const TrainingSetup setup =
      megatron({.data_parallel = 4, .expert_parallel = 4, .expert_dispatcher = ExpertDispatcher::hybridep});
  const Trace trace = generate(experts(), setup);
  EXPECT_EQ(count_of(trace, "sort_chunks"), 0);
  const auto arrived = std::llround(b * s * distinct_choices(4, k)) * h * 2;
  std::int64_t found = 0;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.strings.text(trace.tensors.name[i]).ends_with("experts.exchanged"))
      found += trace.tensors.bytes[i].count() == arrived ? 1 : 0;
  EXPECT_EQ(found, 1);
}

TEST(ExpertExchange, IsHiddenInPartBesideAnotherMicroBatch) {
  TrainingSetup setup =
      megatron({.data_parallel = 4, .expert_parallel = 4, .expert_dispatcher = ExpertDispatcher::deepep});
  for (const std::int64_t micro_batches : {1, 2, 8}) {
    setup.gradient_accumulation = micro_batches;
    setup.overlap_experts = false;
    const double whole = to_seconds(time_of(generate(experts(), setup), "all_to_all"));
    setup.overlap_experts = true;
    const double hidden = 0.6 * static_cast<double>(micro_batches - 1) / static_cast<double>(micro_batches);
    EXPECT_NEAR(to_seconds(time_of(generate(experts(), setup), "all_to_all")) / whole, 1 - hidden, 1e-3);
  }
}

TEST(ExpertExchange, IsOverlappedWhereMegatronCoreDoes) {
  const auto refused = [](TrainingSetup setup) {
    try {
      static_cast<void>(generate(experts(), setup));
    } catch (const InputError& error) {
      return error.place();
    }
    return std::string();
  };
  const TrainingSetup usual =
      megatron({.gradient_accumulation = 4, .data_parallel = 4, .expert_parallel = 4, .overlap_experts = true});
  EXPECT_EQ(refused(usual), "");
  TrainingSetup setup = usual;
  setup.recompute = Recompute::full;
  EXPECT_EQ(refused(setup), "overlap_experts");
  setup = usual;
  setup.overlap_shared_experts = true;
  EXPECT_EQ(refused(setup), "overlap_experts");
  setup = usual;
  setup.pipeline_parallel = 2;
  EXPECT_EQ(refused(setup), "overlap_experts");
  setup = usual;
  setup.precision = TrainingPrecision::fp32;
  EXPECT_EQ(refused(setup), "overlap_experts");
  setup = usual;
  setup.expert_parallel = 1;
  EXPECT_EQ(refused(setup), "overlap_experts");
  setup = usual;
  setup.framework = Framework::eager;
  EXPECT_EQ(refused(setup), "overlap_experts");
}

// No more of an exchange is hidden than there is other work; the first forward and the last backward have none.
TEST(ExpertExchange, HidesNoMoreThanOtherWorkTakes) {
  const Cluster slow{8, [](NetworkCollective, Bytes, const GroupShape& group) {
                       return group.tokens.chosen > 0 ? milliseconds(1) : Picos(1000);
                     }};
  TrainingSetup setup = megatron({.data_parallel = 4, .expert_parallel = 4, .overlap_experts = true});
  setup.sequence = s, setup.micro_batch = b, setup.gradient_accumulation = 3;
  const Trace trace = generate_trace(experts(), setup, CostModel(example_profile()), slow);
  double work = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops.kind[i] == OpKind::kernel && trace.ops.layer[i] == 0) work += to_seconds(trace.ops.duration[i]);
  EXPECT_LT(work, 12e-3);
  EXPECT_NEAR(to_seconds(time_of(trace, "all_to_all")), 12e-3 - 2.0 / 3 * 0.6 * work,
              12e-5);  // but for probabilities' exchange
}

// A product calls the library for each local expert, forwards once and backwards twice; in fp8 so do the casts.
// Larger groups leave fewer experts to a rank. Fused products read their shapes on the GPU, graphs have none of it.
TEST(ExpertLaunches, AreOneForEachLocalExpert) {
  const Picos unit = CostModel(example_profile()).host_time_per_kernel() * 5;
  TrainingSetup setup = megatron({.data_parallel = 4});
  EXPECT_EQ(time_of(generate(experts(), setup), "launch_experts"), unit * 6 * (e - 1));
  setup.expert_parallel = 4;
  EXPECT_EQ(time_of(generate(experts(), setup), "launch_experts"), unit * 6 * (e / 4 - 1));
  setup.precision = TrainingPrecision::fp8_mixed;
  setup.fp8_recipe = Fp8Recipe::mxfp8;
  setup.expert_dispatcher = ExpertDispatcher::hybridep;
  EXPECT_EQ(time_of(generate(experts(), setup), "launch_experts"), unit * 10 * (e / 4 - 1));
  setup.fused_experts = true;
  EXPECT_EQ(count_of(generate(experts(), setup), "launch_experts"), 0);
  setup.fused_experts = false;
  setup.cuda_graphs = "full_iteration";
  EXPECT_EQ(count_of(generate(experts(), setup), "launch_experts"), 0);
}

// Rows in fp8 are padded on each side of the experts, there and back, unless Hybrid-EP's permutation does it.
TEST(ExpertLaunches, PadRowsInFp8) {
  TrainingSetup setup = megatron({.precision = TrainingPrecision::fp8_mixed, .data_parallel = 4, .expert_parallel = 4});
  EXPECT_EQ(count_of(generate(experts(), setup), "pad_rows"), 2);
  EXPECT_EQ(count_of(generate(experts(), setup), "unpad_rows"), 2);
  setup.expert_dispatcher = ExpertDispatcher::hybridep;
  EXPECT_EQ(count_of(generate(experts(), setup), "pad_rows"), 0);
  setup.precision = TrainingPrecision::bf16_mixed;
  setup.expert_dispatcher = ExpertDispatcher::nccl;
  EXPECT_EQ(count_of(generate(experts(), setup), "pad_rows"), 0);
}

// Operators of their own cost the host more than one kernel.
TEST(ExpertLaunches, FusedRoutersSpareTheHost) {
  TrainingSetup setup = megatron({.data_parallel = 4, .expert_parallel = 4});
  const Picos fused = generate(experts(), setup).steps.back().duration;
  setup.router_fusion = false;
  const Picos router = generate(experts(), setup).steps.back().duration;
  setup.permute_fusion = false;
  EXPECT_LT(fused, router);
  EXPECT_LT(router, generate(experts(), setup).steps.back().duration);
}

// Of Megatron-core alone, and once more where DeepEP sends by the host's threads.
TEST(HostTimes, FollowTheHostsSlowdown) {
  HardwareProfile profile = ProfileLibrary::shared().load_system("cloud-8xh100");
  const auto whole = [&](const TrainingSetup& setup) {
    TrainingSetup one = setup;
    one.sequence = s, one.micro_batch = b;
    const Trace trace = generate_trace(experts(), one, CostModel(profile), flat_cluster());
    return to_seconds(trace.steps.back().duration);
  };
  TrainingSetup setup = megatron({.data_parallel = 16, .expert_parallel = 4});
  const TrainingSetup eager{.data_parallel = 16, .expert_parallel = 4};
  const double slow = whole(setup), slow_eager = whole(eager);
  setup.expert_dispatcher = ExpertDispatcher::deepep;
  const double deep = whole(setup);
  profile.gpu_count = 2;  // groups of four span machines
  EXPECT_GT(whole(setup), deep * 1.2);
  setup.expert_dispatcher = ExpertDispatcher::nccl;
  profile.host.framework_slowdown->value = 1;
  EXPECT_NEAR(slow / whole(setup), 2, 0.1);
  EXPECT_EQ(whole(eager), slow_eager);
}

// The host waits once per layer, in the forward; not where shapes are static or everything is a graph. DeepEP makes it
// wait for the layout, for what arrived and for the map of it.
TEST(ExpertExchange, WaitsForCountsUnlessShapesAreStatic) {
  TrainingSetup setup = megatron({.data_parallel = 2, .expert_parallel = 2});
  EXPECT_EQ(count_of(generate(experts(), setup), "cudaEventSynchronize"), 1);
  setup.expert_dispatcher = ExpertDispatcher::deepep;
  EXPECT_EQ(count_of(generate(experts(), setup), "cudaEventSynchronize"), 3);
  setup.static_experts = true;
  EXPECT_EQ(count_of(generate(experts(), setup), "cudaEventSynchronize"), 0);
  setup.static_experts = false;
  setup.cuda_graphs = "full_iteration";
  EXPECT_EQ(count_of(generate(experts(), setup), "cudaEventSynchronize"), 0);
}

// Tensor ranks that hold whole experts exchange their parts of the sequence, and gather and sum nothing for them.
TEST(ExpertExchange, SpreadsWholeExpertsOverTensorRanks) {
  TrainingSetup setup = megatron({.tensor_parallel = 2, .sequence_parallel = true, .data_parallel = 2});
  setup.expert_parallel = 2;
  const Trace split = generate(experts(), setup);
  setup.expert_parallel = 4;
  setup.expert_tensor_parallel = 1;
  const Trace whole = generate(experts(), setup);
  EXPECT_LT(count_of(whole, "all_gather"), count_of(split, "all_gather"));
  EXPECT_LT(count_of(whole, "reduce_scatter"), count_of(split, "reduce_scatter"));
  const auto of_experts = [](const Trace& trace) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      if (trace.strings.text(trace.tensors.name[i]) == "layers.0.mlp.experts.down.weight")
        bytes += trace.tensors.bytes[i].count();
    return bytes;
  };
  EXPECT_EQ(of_experts(whole), of_experts(split));
  setup.expert_parallel = 8;  // of 4 ranks
  EXPECT_THROW(generate(experts(), setup), InputError);
}

ModelSpec llama() {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 1, model.hidden = h, model.heads = 8, model.kv_heads = 2, model.head_dim = 32;
  model.vocabulary = 1024, model.feed_forward = 512;
  return model;
}

// Keys and values of all heads: gathered once forwards and once backwards, whole; their gradients in fp32 c times.
TEST(GatheredKeys, TravelRepeatedAndInFp32) {
  constexpr std::int64_t c = 4, local = b * s / c;
  std::vector<std::int64_t> gathers, shifts;
  const Cluster cluster{8, [&](NetworkCollective kind, Bytes bytes, const GroupShape& group) {
                          if (group.ranks == c && kind == NetworkCollective::all_gather)
                            gathers.push_back(bytes.count());
                          if (kind == NetworkCollective::send_receive) shifts.push_back(bytes.count());
                          return Picos(1000);
                        }};
  TrainingSetup setup{.context_parallel = c, .context_exchange = ContextExchange::all_gather};
  setup.sequence = s, setup.micro_batch = b;
  const Trace trace = generate_trace(llama(), setup, CostModel(example_profile()), cluster);
  trace.check_invariants();
  EXPECT_EQ(gathers, std::vector<std::int64_t>(2, 2 * local * c * h * 2));
  EXPECT_EQ(shifts, std::vector<std::int64_t>(c, 2 * local * h * 4));
  EXPECT_EQ(count_of(trace, "flash_attention"), c);
  EXPECT_EQ(count_of(trace, "merge_turn"), c - 1);
}

// However a context group shares attention, it computes as much.
TEST(GatheredKeys, DoTheWorkOfARing) {
  TrainingSetup setup{.context_parallel = 4};
  const std::int64_t ring = flops_of(generate(llama(), setup), Phase::forward);
  setup.context_exchange = ContextExchange::all_gather;
  EXPECT_EQ(flops_of(generate(llama(), setup), Phase::forward), ring);
  setup.framework = Framework::megatron;
  EXPECT_THROW(generate(llama(), setup), InputError);
}

// One projection of queries, keys and values, as GPT-2 has it, is gathered by its parts.
TEST(GatheredKeys, OfAPackedProjectionAreTheSame) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = 1, model.hidden = h, model.heads = model.kv_heads = 8, model.head_dim = 32;
  model.vocabulary = 1024, model.feed_forward = 512;
  TrainingSetup setup{.context_parallel = 4};
  const std::int64_t ring = flops_of(generate(model, setup), Phase::forward);
  setup.context_exchange = ContextExchange::all_gather;
  const Trace trace = generate(model, setup);
  trace.check_invariants();
  EXPECT_EQ(flops_of(trace, Phase::forward), ring);
  EXPECT_EQ(count_of(trace, "flash_attention_backward"), 4);
}

// Cut up, a collective takes no longer than whole, and a part of it stays to be seen. Pieces of so small a product take
// as long as the whole one, so that a gather gains nothing.
TEST(TensorOverlap, HidesWhatProductsHide) {
  const Cluster slow{8, [](NetworkCollective, Bytes, const GroupShape&) { return microseconds(500); }};
  const auto on_slow = [&](TrainingSetup setup) {
    setup.sequence = s, setup.micro_batch = b;
    return generate_trace(llama(), setup, CostModel(example_profile()), slow);
  };
  TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = true};
  const Trace whole = on_slow(setup);
  setup.overlap_tensor = true;
  const Trace cut = on_slow(setup);
  for (const char* name : {"all_gather", "reduce_scatter"}) {
    EXPECT_EQ(count_of(cut, name), count_of(whole, name));
    EXPECT_LE(time_of(cut, name), time_of(whole, name));
    EXPECT_GT(time_of(cut, name), Picos{});
  }
  EXPECT_LT(time_of(cut, "reduce_scatter"), time_of(whole, "reduce_scatter"));
}

// PyTorch's collectives know the first side alone: several sequences are put in order after each gather and before each
// scatter, by copies of the whole activation; one sequence is not.
TEST(TensorRanks, PutSeveralSequencesInOrder) {
  TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = true};
  const Trace two = generate(llama(), setup);
  EXPECT_EQ(count_of(two, "cat"), count_of(two, "all_gather") + count_of(two, "reduce_scatter"));
  setup.framework = Framework::megatron_2022;
  EXPECT_EQ(count_of(generate(llama(), setup), "cat"), 0);
  setup.framework = Framework::eager;
  setup.sequence = s, setup.micro_batch = 1;
  EXPECT_EQ(count_of(generate_trace(llama(), setup, CostModel(example_profile()), flat_cluster()), "cat"), 0);
}

// torch.compile finds the gathers of two products and the scatters of one; behind several products, and before products
// with scales by row, they stay whole, and are copied.
TEST(TensorRanks, CutUpWhatTheCompilerFinds) {
  TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = true, .overlap_tensor = true};
  const Trace cut = generate(llama(), setup);
  const std::int64_t of_blocks_backward = 2, of_the_embedding = 1;
  EXPECT_EQ(count_of(cut, "cat"), of_blocks_backward + of_the_embedding * 2);
  setup.precision = TrainingPrecision::fp8_mixed;
  setup.fp8_recipe = Fp8Recipe::tensorwise;
  const std::int64_t by_tensor = count_of(generate(llama(), setup), "cat");
  setup.fp8_recipe = Fp8Recipe::rowwise;
  EXPECT_EQ(count_of(generate(llama(), setup), "cat"), by_tensor + 4);
}

// The embedding is whole and its result not summed; logits are gathered along the vocabulary.
TEST(TensorRanks, MayHoldTheWholeVocabulary) {
  TrainingSetup setup{.tensor_parallel = 2, .sequence_parallel = true, .whole_vocabulary = true};
  ModelSpec model = llama();
  model.tied_embeddings = false;
  const Trace whole = generate(model, setup);
  setup.whole_vocabulary = false;
  const Trace split = generate(model, setup);
  EXPECT_EQ(count_of(whole, "reduce_scatter"), count_of(split, "reduce_scatter") - 1);
  EXPECT_EQ(count_of(split, "nll_loss"), 0);
  EXPECT_EQ(count_of(whole, "nll_loss"), 1);
  model.tied_embeddings = true;
  setup.whole_vocabulary = true;
  EXPECT_THROW(generate(model, setup), InputError);
}

// What torch.compile traces waits where it is issued: kernels beside a gather of keys come behind it.
TEST(GatheredKeys, AreWaitedForWhenCompiled) {
  const Cluster slow{8, [](NetworkCollective, Bytes, const GroupShape&) { return milliseconds(50); }};
  const auto first_after_gather = [&](bool compiled) {
    TrainingSetup setup{.compile = compiled, .context_parallel = 4, .context_exchange = ContextExchange::all_gather};
    setup.sequence = s, setup.micro_batch = b;
    const Trace trace = generate_trace(llama(), setup, CostModel(example_profile()), slow);
    const std::size_t gather = ops_named(trace, "all_gather").front();
    const std::size_t kernel = ops_named(trace, "flash_attention").front();
    return std::any_of(trace.edges.begin(), trace.edges.end(),
                       [&](const Edge& edge) { return index_of(edge.from) == gather && index_of(edge.to) == kernel; });
  };
  EXPECT_TRUE(first_after_gather(true));
  EXPECT_FALSE(first_after_gather(false));
}

// A captured operator takes the host half a microsecond, backwards too; others what they did.
TEST(Graphs, CostTheHostNextToNothing) {
  const auto host = [](const Trace& trace) { return trace.steps.back().duration; };
  TrainingSetup setup{};
  const Picos eager = host(generate(llama(), setup));
  setup.cuda_graphs = "attn";
  const Picos attention = host(generate(llama(), setup));
  setup.cuda_graphs = "full_iteration";
  const Picos whole = host(generate(llama(), setup));
  EXPECT_LT(attention, eager);
  EXPECT_LT(whole, attention);
  setup.cuda_graphs = "attention";
  EXPECT_THROW(generate(llama(), setup), InputError);
}

TEST(StageLayers, AreThoseStated) {
  ModelSpec model = llama();
  model.layers = 6;
  TrainingSetup setup{.gradient_accumulation = 4, .pipeline_parallel = 3, .stage_layers = "3,2,1"};
  const auto layers_of = [&](const TrainingSetup& with, std::uint16_t device) {
    const Trace trace = generate(model, with);
    std::vector<std::uint16_t> seen;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.ops.layer[i] != no_index16 && trace.lanes[index_of(trace.ops.lane[i])].device == device)
        seen.push_back(trace.ops.layer[i]);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    return seen.size();
  };
  EXPECT_EQ(layers_of(setup, 0), 3U);
  EXPECT_EQ(layers_of(setup, 2), 1U);
  setup.stage_layers = "3,2,2";
  EXPECT_THROW(generate(model, setup), InputError);
  setup.stage_layers = "3,x,1";
  EXPECT_THROW(generate(model, setup), InputError);
}

}  // namespace
}  // namespace spillway::models::parallel_times
