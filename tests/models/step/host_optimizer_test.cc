#include "models/step/host_optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "models/step/parallel_trace.h"
#include "models/step/trace_generator.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"

namespace spillway::models::host_optimizer {
namespace {

HardwareProfile with_host() {
  HardwareProfile profile = example_profile();
  profile.host.dram_bandwidth.value = rate_from_bytes_per_second(2e11);
  profile.host.cores.value = 32;
  profile.host.cpu_adam_parameters_per_second = {.value = 1e9};
  return profile;
}

ModelSpec gpt(std::int64_t layers) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = layers;
  model.hidden = 256;
  model.heads = model.kv_heads = 8;
  model.head_dim = 32;
  model.feed_forward = 1024;
  model.vocabulary = 512;
  model.max_positions = 256;
  return model;
}

Cluster cluster() {
  return {4, [](NetworkCollective, Bytes bytes, const GroupShape&) {
            return microseconds(10) + Picos(bytes.count() * 10);
          }};
}

Trace generate(const TrainingSetup& setup, std::int64_t layers = 4) {
  Trace trace = generate_trace(gpt(layers), setup, CostModel(with_host()), cluster());
  trace.check_invariants();
  return trace;
}

TrainingSetup on(StateDevice device, TrainingSetup setup = {}) {
  setup.optimizer_device = device;
  setup.bucket_bytes = 1 << 20;
  return setup;
}

std::map<std::string, std::int64_t> bytes_by_name(const Trace& trace) {
  std::map<std::string, std::int64_t> sums;
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    sums[std::string(trace.strings.text(trace.ops.name[i]))] += trace.ops.bytes[i].count();
  return sums;
}

// Held before the step begins and, of activations and gradients, nothing at its end.
std::int64_t held_before(const Trace& trace, bool on_host) {
  std::int64_t held = 0;
  for (const MemoryEvent& event : trace.memory_events)
    if (event.anchor == OpId::none && (event.device < 0) == on_host && event.action == MemoryAction::allocate &&
        trace.tensors.role[index_of(event.tensor)] != TensorRole::input)
      held += event.bytes.count();
  return held;
}

std::int64_t parameters(std::int64_t layers = 4) { return parameter_counts(gpt(layers)).total(); }

// ZeRO-Offload (arXiv 2101.06840, section 3): with M parameters, gradients of 2M bytes leave and weights of 2M bytes
// come back, 4M in a step; nothing else crosses.
TEST(HostOptimizer, MovesFourBytesAParameter) {
  for (const std::int64_t micro_batches : {1, 3}) {
    const auto moved = bytes_by_name(generate(on(StateDevice::cpu, {.gradient_accumulation = micro_batches})));
    EXPECT_EQ(moved.at("gradients_to_host"), 2 * parameters());
    EXPECT_EQ(moved.at("weights_to_device"), 2 * parameters());
    EXPECT_FALSE(moved.contains("states_from_drives"));
  }
}

// The same, table 1: 2M bytes stay on the GPU, 14M go to the host; ours adds two buffers of the largest layer's 16-bit
// weights. The GPU is relieved of 12M bytes of optimizer state between steps.
TEST(HostOptimizer, KeepsStateOnTheHost) {
  const Trace gpu = generate({}), host = generate(on(StateDevice::cpu));
  EXPECT_EQ(held_before(gpu, false) - held_before(host, false), 12 * parameters());
  const std::int64_t largest = std::max(parameters(2) - parameters(1), parameters(1) - (parameters(2) - parameters(1)));
  EXPECT_EQ(held_before(host, true), 14 * parameters() + 2 * 2 * largest);
  EXPECT_EQ(held_before(gpu, true), 0);
}

// Adam reads a gradient of 2 bytes and 12 of state, writes 12 and a weight of 2: 28 bytes at 28 GB/s, 1 ns a parameter.
TEST(HostOptimizer, TakesTheHostsRate) {
  const Trace trace = generate(on(StateDevice::cpu));
  Picos adam{};
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (trace.strings.text(trace.ops.name[i]) == "cpu_adam") adam += trace.ops.duration[i];
  EXPECT_NEAR(to_seconds(adam), 1e-9 * static_cast<double>(parameters()), 1e-9);
}

// GPUs of a machine share its cores: 4 of 4 are a quarter as fast, on a quarter of the parameters each under ZeRO.
TEST(HostOptimizer, SharesAreUpdatedByEachRank) {
  for (const std::int64_t stage : {1, 2, 3}) {
    const Trace trace = generate(on(StateDevice::cpu, {.data_parallel = 4, .zero_stage = stage}));
    const auto moved = bytes_by_name(trace);
    EXPECT_NEAR(static_cast<double>(moved.at("gradients_to_host")), 2.0 * static_cast<double>(parameters()) / 4, 400)
        << stage;
    EXPECT_NEAR(static_cast<double>(moved.at("weights_to_device")), 2.0 * static_cast<double>(parameters()) / 4, 400);
    Picos adam{};
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      if (trace.strings.text(trace.ops.name[i]) == "cpu_adam") adam += trace.ops.duration[i];
    EXPECT_NEAR(to_seconds(adam), 1e-9 * static_cast<double>(parameters()), 1e-6);
  }
}

// Gradients go as they leave: what the GPU holds at the end of the backward is less than all of them.
TEST(HostOptimizer, GradientsLeaveDuringTheBackward) {
  const Trace trace = generate(on(StateDevice::cpu), 12);
  std::int64_t gradients = 0, most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device < 0 || trace.tensors.role[index_of(event.tensor)] != TensorRole::gradient) continue;
    if (event.action == MemoryAction::allocate) gradients += event.bytes.count();
    if (event.action == MemoryAction::free_requested) gradients -= event.bytes.count();
    most = std::max(most, gradients);
  }
  EXPECT_EQ(gradients, 0);
  EXPECT_LT(most, parameters(12));  // half of the 2 bytes each
}

// ZeRO-Infinity's traffic in Smart-Infinity (arXiv 2403.06664, table I), in units of the fp16 model's bytes: states 6
// read and 6 written, gradients 2 written and 2 read, 16 in all; 32 bytes a parameter.
TEST(HostOptimizer, StatesOnDrivesMoveThirtyTwoBytesAParameter) {
  const auto moved = bytes_by_name(generate(on(StateDevice::drives)));
  EXPECT_EQ(moved.at("states_to_drives"), 12 * parameters());
  EXPECT_EQ(moved.at("gradients_to_drives"), 4 * parameters());
  EXPECT_EQ(moved.at("states_from_drives"), 16 * parameters());
  EXPECT_EQ(moved.at("gradients_to_host"), 2 * parameters());
}

// Weights fetched for each use: once forwards and once backwards of each micro-batch, layers and the rest; updated by
// the CPU where they are.
TEST(HostOptimizer, WeightsAreFetchedForEachUse) {
  TrainingSetup setup = on(StateDevice::cpu, {.gradient_accumulation = 2, .zero_stage = 3});
  const std::int64_t layers = 4 * (parameters(2) - parameters(1)), rest = parameters() - layers;
  setup.weight_device = StateDevice::cpu;
  const Trace on_cpu = generate(setup);
  const auto from_host = bytes_by_name(on_cpu);
  EXPECT_EQ(from_host.at("fetch_weights"), 2 * (2 * 2 * layers + 2 * rest));
  EXPECT_FALSE(from_host.contains("weights_to_device"));
  EXPECT_EQ(held_before(on_cpu, false), 8 * 256) << "only the numbers of positions";
  setup.optimizer_device = setup.weight_device = StateDevice::drives;
  const auto from_drives = bytes_by_name(generate(setup));
  EXPECT_EQ(from_drives.at("fetch_weights"), 2 * (2 * 2 * layers + 2 * rest));
  EXPECT_EQ(from_drives.at("weights_to_drives"), 2 * parameters());
}

// A stage over one rank is no stage: the same ops, times and memory, wherever the state is.
TEST(HostOptimizer, OneRankStepsAlikeUnderEveryStage) {
  const auto told = [](const Trace& trace) {
    std::string text;
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      text += std::string(trace.strings.text(trace.ops.name[i])) + " " + std::to_string(trace.ops.start[i].count()) +
              " " + std::to_string(trace.ops.duration[i].count()) + " " + std::to_string(trace.ops.bytes[i].count()) +
              "\n";
    for (const MemoryEvent& event : trace.memory_events)
      text += std::to_string(event.bytes.count()) + " " + std::to_string(static_cast<int>(event.action)) + "\n";
    return text;
  };
  for (const StateDevice device : {StateDevice::gpu, StateDevice::cpu, StateDevice::drives})
    for (const bool fetches : {false, true}) {
      if (fetches && device == StateDevice::gpu) continue;
      TrainingSetup setup = on(device, {.gradient_accumulation = 2});
      if (fetches) setup.weight_device = device;
      const std::string none = told(generate(setup));
      for (setup.zero_stage = 1; setup.zero_stage <= 3; ++setup.zero_stage)
        EXPECT_EQ(told(generate(setup)), none) << setup.zero_stage << (fetches ? " fetched" : "");
    }
}

// Nothing is left for the GPU after it, and the next step still waits for the CPU: it is part of the step's time.
TEST(HostOptimizer, AnUpdateOfWeightsThatStayTakesTime) {
  TrainingSetup setup = on(StateDevice::cpu, {.gradient_accumulation = 2, .zero_stage = 3});
  setup.weight_device = StateDevice::cpu;
  const HardwareProfile profile = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  const Trace trace = generate_trace(gpt(4), setup, CostModel(profile), cluster());
  const sim::Result result = sim::replay(trace, profile, {});
  Picos adam{}, device_end{};
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.strings.text(trace.ops.name[i]) == "cpu_adam") adam += trace.ops.duration[i];
    if (is_device_work(trace.ops.kind[i])) device_end = std::max(device_end, result.op_end[i]);
  }
  EXPECT_GT(adam, microseconds(100));
  EXPECT_GE(result.step_time, result.steps.back().span() + adam - microseconds(100))
      << "the last gradients' copies aside";
  EXPECT_GT(result.op_end.back(), device_end);
}

// No transfer is asked for before the call that asks for it, in any micro-batch.
TEST(HostOptimizer, TransfersBelongToTheirMicroBatch) {
  for (const StateDevice device : {StateDevice::cpu, StateDevice::drives}) {
    TrainingSetup setup = on(device, {.gradient_accumulation = 6, .zero_stage = 3});
    setup.weight_device = device;
    const Trace trace = generate(setup);
    const auto asked = [&](OpId op) {
      return trace.ops.launched_by[index_of(op)] == OpId::none ? trace.ops.start[index_of(op)] : unknown_time;
    };
    int transfers = 0;
    for (const Edge& edge : trace.edges) {
      if (asked(edge.from) == unknown_time || asked(edge.to) == unknown_time) continue;
      EXPECT_LE(asked(edge.from), asked(edge.to)) << trace.strings.text(trace.ops.name[index_of(edge.to)]);
      ++transfers;
    }
    EXPECT_GT(transfers, 6 * 4);
  }
}

// The delayed update needs last step's gradients and all 16-bit weights in host memory: 18M bytes.
TEST(HostOptimizer, DelayedUpdateHoldsASecondSetOfGradients) {
  TrainingSetup setup = on(StateDevice::cpu);
  setup.delayed_update = true;
  const Trace trace = generate(setup);
  EXPECT_EQ(held_before(trace, true), 18 * parameters());
  EXPECT_EQ(bytes_by_name(trace).at("weights_to_device"), 2 * parameters());
}

// Stages of a pipeline update what is theirs; gradients that stages have copies of wait for their sum.
TEST(HostOptimizer, StagesUpdateWhatIsTheirs) {
  for (const std::int64_t chunks : {1, 2}) {
    const Trace trace = generate(on(StateDevice::cpu, {.gradient_accumulation = 4,
                                                       .framework = Framework::megatron_2022,
                                                       .pipeline_parallel = 2,
                                                       .pipeline_chunks = chunks}));
    const auto moved = bytes_by_name(trace);
    const std::int64_t both = parameters() + 512 * 256;  // the tied embedding is on both stages
    EXPECT_EQ(moved.at("gradients_to_host"), 4 * both) << "fp32 main gradients";
    EXPECT_EQ(moved.at("weights_to_device"), 2 * both);
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      if (trace.strings.text(trace.ops.name[i]) != "all_reduce_embedding") continue;
      const auto later = [&](const Edge& edge) {
        return edge.from == OpId(static_cast<std::uint32_t>(i)) &&
               trace.strings.text(trace.ops.name[index_of(edge.to)]) == "gradients_to_host";
      };
      EXPECT_TRUE(std::any_of(trace.edges.begin(), trace.edges.end(), later));
    }
  }
}

TEST(HostOptimizer, WhatItCannotDoIsRefused) {
  const ModelSpec model = gpt(2);
  EXPECT_THROW(resolve(on(StateDevice::cpu, {.optimizer = OptimizerKind::sgd}), model), InputError);
  EXPECT_THROW(resolve({.weight_device = StateDevice::cpu}, model), InputError);
  EXPECT_THROW(resolve({.delayed_update = true}, model), InputError);
  TrainingSetup delayed = on(StateDevice::drives);
  delayed.delayed_update = true;
  EXPECT_THROW(resolve(delayed, model), InputError);
}

// A host that doesn't say how fast it is goes by its DRAM, 60 % of 200 GB/s, or its cores at 12 GB/s each.
TEST(CostModel, HostUpdateGoesByDramOrCores) {
  HardwareProfile profile = with_host();
  profile.host.cpu_adam_parameters_per_second.reset();
  EXPECT_EQ(CostModel(profile).host_update(Bytes(120'000'000'000), 1).time, from_seconds(1));
  EXPECT_EQ(CostModel(profile).host_update(Bytes(120'000'000'000), 1, 60e9).time, from_seconds(2));  // of a process
  EXPECT_EQ(CostModel(profile).host_update(Bytes(120'000'000'000), 4, 60e9).time, from_seconds(4));
  EXPECT_EQ(CostModel(profile).host_update(Bytes(120'000'000'000), 4).time, from_seconds(4));
  profile.host.cores.value = 5;
  EXPECT_EQ(CostModel(profile).host_update(Bytes(120'000'000'000), 1).time, from_seconds(2));
}

}  // namespace
}  // namespace spillway::models::host_optimizer
