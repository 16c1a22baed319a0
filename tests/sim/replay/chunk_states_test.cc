// Chronos-Offload: optimizer states of deep chunks in host memory, moved in the window between their last backward and
// their next forward.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/input_error.h"
#include "models/step/parallel_trace.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"

namespace spillway::sim {
namespace {

ModelSpec chunked_gpt(std::int64_t layers) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = layers;
  model.hidden = 1024;
  model.heads = model.kv_heads = 8;
  model.head_dim = 128;
  model.feed_forward = 4096;
  model.vocabulary = 512;
  model.max_positions = 1024;
  return model;
}

TrainingSetup chronos(std::int64_t offloaded, StateDevice device) {
  TrainingSetup setup{.micro_batch = 8,
                      .sequence = 1024,
                      .gradient_accumulation = 8,
                      .optimizer_form = OptimizerForm::fused,
                      .framework = Framework::megatron_2022,
                      .pipeline_parallel = 4};
  setup.pipeline_schedule = "chronos";
  setup.offloaded_states = offloaded;
  setup.optimizer_device = device;
  return setup;
}

// One CPU, four GPUs; slower divides the rate of each GPU's link, 50 GB/s.
HardwareProfile slower_machine(double slower) {
  HardwareProfile profile = example_profile();
  const Rate link = rate_from_bytes_per_second(50e9 / slower);
  profile.gpu.host_to_device_bandwidth = Sourced<Rate>{link, {}};
  profile.gpu.device_to_host_bandwidth = Sourced<Rate>{link, {}};
  profile.gpu.hbm_contention_factor.value = 1;
  profile.gpu_count = 4;
  profile.host.cpu_adam_parameters_per_second = {.value = 4e10};
  profile.host.dram_bandwidth = Sourced<Rate>{rate_from_bytes_per_second(400e9), {}};
  PcieNode node;
  node.name = "cpu0";
  node.kind = PcieNodeKind::root_complex;
  profile.host.pcie.push_back(node);
  node.kind = PcieNodeKind::gpu_slot;
  node.up = 0;
  for (const char* gpu : {"gpu0", "gpu1", "gpu2", "gpu3"}) {
    node.name = gpu;
    profile.host.pcie.push_back(node);
  }
  assign_slots(profile, false);
  return profile;
}

Cluster free_network() {
  return {8, [](NetworkCollective, Bytes, const GroupShape&) { return Picos(1); }};
}

Trace generate(const TrainingSetup& setup, std::int64_t layers = 16) {
  Trace trace = generate_parallel_trace(chunked_gpt(layers), setup, CostModel(slower_machine(1)), free_network());
  trace.check_invariants();
  return trace;
}

std::int64_t bytes_of(const Trace& trace, std::string_view name, std::int64_t rank) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.strings.text(trace.ops.name[i]) == name && trace.lanes[index_of(trace.ops.lane[i])].rank == rank)
      bytes += trace.ops.bytes[i].count();
  return bytes;
}

// Elements of a layer's parameters: 12 h^2 of matrices, 9 h of biases, 4 h of two norms.
constexpr std::int64_t layer = 12 * 1024 * 1024 + 13 * 1024;

// Two layers a chunk: fp32 gradients go out, 16-bit weights come back; with the update on the GPU 12 bytes each way.
TEST(ChunkStates, MoveOncePerStep) {
  const Trace host = generate(chronos(1, StateDevice::cpu)), device = generate(chronos(1, StateDevice::gpu));
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(bytes_of(host, "gradients_to_host", rank), 2 * layer * 4);
    EXPECT_EQ(bytes_of(host, "weights_to_device", rank), 2 * layer * 2);
    EXPECT_EQ(bytes_of(device, "states_to_device", rank), 2 * layer * 12);
    EXPECT_EQ(bytes_of(device, "states_to_host", rank), 2 * layer * 12);
  }
  EXPECT_EQ(bytes_of(generate(chronos(2, StateDevice::cpu)), "gradients_to_host", 1), 4 * layer * 4);
  EXPECT_EQ(host.carried.size(), 4u * 2u);    // two layers on each of four stages
  EXPECT_EQ(device.carried.size(), 4u * 4u);  // and two buffers
}

// The GPU keeps 6 of 18 bytes per parameter of an offloaded chunk.
TEST(ChunkStates, TakeTheirMemoryWithThem) {
  const HardwareProfile hardware = slower_machine(1);
  const Result plain = replay(generate(chronos(0, StateDevice::gpu)), hardware, {});
  const Result one = replay(generate(chronos(1, StateDevice::cpu)), hardware, {});
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_NEAR(static_cast<double>((plain.ranks[rank].peak_allocated - one.ranks[rank].peak_allocated).count()),
                static_cast<double>(2 * layer * 12), 0.02 * static_cast<double>(2 * layer * 12));
}

// With the update on the GPU two layers' states stay there as buffers, here of the eight of a chunk.
TEST(ChunkStates, ComeAndGoThroughTwoBuffers) {
  const HardwareProfile hardware = slower_machine(1);
  const Result plain = replay(generate(chronos(0, StateDevice::gpu), 64), hardware, {});
  const Result one = replay(generate(chronos(1, StateDevice::gpu), 64), hardware, {});
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_NEAR(static_cast<double>((plain.ranks[rank].peak_allocated - one.ranks[rank].peak_allocated).count()),
                static_cast<double>(6 * layer * 12), 0.02 * static_cast<double>(6 * layer * 12));
}

// With links and a CPU that are fast enough nothing shows; on a narrow one the step is as long as gradients, update and
// weights of the worst stage take, which the narrower link makes longer still.
TEST(ChunkStates, WhatDoesNotFitTheWindowShows) {
  const auto step = [](std::int64_t offloaded, StateDevice device, double slower) {
    return to_seconds(replay(generate(chronos(offloaded, device)), slower_machine(slower), {}).step_time);
  };
  const double plain = step(0, StateDevice::gpu, 1), wide = step(1, StateDevice::cpu, 1);
  EXPECT_NEAR(wide / plain, 1, 0.02);
  const double narrow = step(1, StateDevice::cpu, 64), narrower = step(1, StateDevice::cpu, 256);
  EXPECT_GT(narrow, plain);
  EXPECT_GT(narrower, 2 * narrow);
  EXPECT_GT(step(1, StateDevice::gpu, 64), narrow);  // twelve bytes each way instead of four and two
}

// Of each rank's share: half of the gradients leave and half of the weights come back, and the other half is gathered.
TEST(ChunkStates, UnderZeroSharesMove) {
  for (const std::int64_t stage : {1, 2}) {
    TrainingSetup setup = chronos(1, StateDevice::cpu);
    setup.data_parallel = 2;
    setup.zero_stage = stage;
    const Trace host = generate(setup);
    setup.offloaded_states = 0;
    setup.optimizer_device = StateDevice::gpu;
    const Trace kept = generate(setup);
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(bytes_of(host, "gradients_to_host", rank), layer * 4) << stage;
      EXPECT_EQ(bytes_of(host, "weights_to_device", rank), layer * 2);
      EXPECT_EQ(bytes_of(host, "all_gather_weights", rank), bytes_of(kept, "all_gather_weights", rank));
    }
    EXPECT_EQ(host.carried.size(), 4u * 2u * 2u);  // what arrives and what is gathered
    const HardwareProfile hardware = slower_machine(1);
    const Result without = replay(kept, hardware, {}), with = replay(host, hardware, {});
    for (std::size_t rank = 0; rank < 4; ++rank)
      EXPECT_NEAR(static_cast<double>((without.ranks[rank].peak_allocated - with.ranks[rank].peak_allocated).count()),
                  static_cast<double>(layer * 12), 0.03 * static_cast<double>(layer * 12));
    EXPECT_NEAR(to_seconds(with.step_time) / to_seconds(without.step_time), 1, 0.03);
  }
}

// The next step's chunk waits for weights that are gathered late.
TEST(ChunkStates, GatheringIsPartOfTheStep) {
  TrainingSetup setup = chronos(1, StateDevice::cpu);
  setup.data_parallel = 2;
  setup.zero_stage = 1;
  const auto step = [&](Picos gathering) {
    const Cluster cluster = {8, [gathering](NetworkCollective kind, Bytes, const GroupShape& group) {
                               return kind == NetworkCollective::all_gather && group.ranks == 2 ? gathering : Picos(1);
                             }};
    const Trace trace = generate_parallel_trace(chunked_gpt(16), setup, CostModel(slower_machine(1)), cluster);
    return replay(trace, slower_machine(1), {}).step_time;
  };
  const Picos quick = step(Picos(1)), second = Picos(1'000'000'000'000);
  EXPECT_GE(step(second), 2 * second);  // of the chunk's two layers, one after the other
  EXPECT_LT(quick, second);
}

// One rank of each group stands for all of them.
TEST(ChunkStates, UnderZeroOneReplicaIsLikeAnother) {
  TrainingSetup setup = chronos(1, StateDevice::cpu);
  setup.data_parallel = 2;
  setup.zero_stage = 1;
  const Cluster cluster = {8, [](NetworkCollective, Bytes, const GroupShape&) { return Picos(50'000'000); }};
  const auto step = [&](RankScope scope) {
    const CostModel cost(slower_machine(1));
    return replay(generate_parallel_trace(chunked_gpt(16), setup, cost, cluster, scope), slower_machine(1), {});
  };
  const Result one = step(RankScope::representative), all = step(RankScope::all);
  EXPECT_EQ(all.ranks.size(), 8U);
  EXPECT_EQ(one.step_time, all.step_time);
}

TEST(ChunkStates, WhatCannotMove) {
  const auto place = [](const TrainingSetup& setup) -> std::string {
    try {
      static_cast<void>(resolve(setup, chunked_gpt(16)));
    } catch (const InputError& error) {
      return error.place();
    }
    return "";
  };
  TrainingSetup setup = chronos(1, StateDevice::cpu);
  EXPECT_EQ(place(setup), "");
  setup.offloaded_states = 3;
  EXPECT_EQ(place(setup), "offloaded_states");
  setup = chronos(1, StateDevice::drives);
  EXPECT_EQ(place(setup), "offloaded_states");
  setup = chronos(1, StateDevice::cpu);
  setup.zero_stage = 1;
  EXPECT_EQ(place(setup), "");  // over one rank it is none
  setup.data_parallel = 2;
  EXPECT_EQ(place(setup), "");
  setup.zero_stage = 3;
  EXPECT_EQ(place(setup), "offloaded_states");
  setup = chronos(1, StateDevice::cpu);
  setup.overlap_gradients = false;
  EXPECT_EQ(place(setup), "offloaded_states");
  setup = chronos(1, StateDevice::cpu);
  setup.optimizer = OptimizerKind::sgd;
  EXPECT_EQ(place(setup), "offloaded_states");
}

}  // namespace
}  // namespace spillway::sim
