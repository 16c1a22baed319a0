#include "validation/trainer/blind_times.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hwprofiles/profile_library.h"

namespace spillway::validation {
namespace {

HardwareProfile machine(const std::string& name) {
  return ProfileLibrary({std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/hwprofiles/data"}).load_system(name);
}

StepGraph small_gpt(ElementType type) {
  TrainerModel model;
  model.vocabulary = 512;
  model.hidden = 256;
  model.layers = 2;
  model.sequence = 128;
  model.batch = 4;
  model.type = type;
  return step_graph(model);
}

const KernelCall& first(const StepGraph& graph, TrainerKernel kernel, std::size_t& at) {
  for (at = 0; at < graph.calls.size(); ++at)
    if (graph.calls[at].kernel == kernel) return graph.calls[at];
  throw std::runtime_error("no such kernel");
}

// Of a GPU of which nothing but its datasheet is known: 0.8 of the bandwidth and 3 us.
TEST(BlindTimes, KernelsThatStreamTakeTheirBytes) {
  HardwareProfile hardware = machine("ssdtrain-testbed");
  hardware.gpu.architecture.clear();
  hardware.gpu.operator_times_of.clear();
  hardware.gpu.kernel_efficiency.clear();
  hardware.gpu.memory_bound_efficiency.reset();
  const StepGraph graph = small_gpt(ElementType::f32);
  const BlindTimes times = blind_times(graph, hardware, std::vector<Picos>(graph.calls.size(), milliseconds(1)));
  const double bandwidth = to_bytes_per_second(hardware.gpu.memory_bandwidth.value);
  const double tokens = 4 * 128, hidden = 256;
  const std::pair<TrainerKernel, double> streamed[] = {
      {TrainerKernel::add, 3 * tokens * hidden * 4},
      {TrainerKernel::gelu, 2 * tokens * 4 * hidden * 4},
      {TrainerKernel::gelu_backward, 3 * tokens * 4 * hidden * 4},
      {TrainerKernel::embed, 3 * tokens * hidden * 4 + tokens * 4},  // not the whole table
      {TrainerKernel::layer_norm, 2 * tokens * hidden * 4 + 2 * hidden * 4 + 2 * tokens * 4}};
  for (const auto& [kernel, bytes] : streamed) {
    std::size_t at = 0;
    first(graph, kernel, at);
    EXPECT_NEAR(to_seconds(times.durations[at]), bytes / (0.8 * bandwidth) + 3e-6, 1e-9) << to_string(kernel);
  }
}

// What no library computes so keeps its measured time, and the share of that is what is left.
TEST(BlindTimes, TheTrainersOwnKernelsKeepTheirTimes) {
  const StepGraph graph = small_gpt(ElementType::bf16);
  const HardwareProfile hardware = machine("h100-80gb-1gpu");
  const auto times_for = [&](Picos of_each) {
    return blind_times(graph, hardware, std::vector<Picos>(graph.calls.size(), of_each));
  };
  const BlindTimes slow = times_for(milliseconds(2)), slower = times_for(milliseconds(4));
  double kept = 0, priced = 0;
  for (std::size_t c = 0; c < graph.calls.size(); ++c) {
    const TrainerKernel kernel = graph.calls[c].kernel;
    if (is_priced(kernel)) {
      EXPECT_EQ(slow.durations[c], slower.durations[c]) << graph.calls[c].name;
      EXPECT_GT(slow.durations[c], Picos(0));
      EXPECT_LT(slow.durations[c], milliseconds(1));
      priced += to_seconds(slow.durations[c]);
    } else {
      EXPECT_EQ(slow.durations[c], milliseconds(2)) << graph.calls[c].name;
      kept += 2e-3;
    }
  }
  EXPECT_NEAR(slow.measured_share, kept / (kept + priced), 1e-9);
  EXPECT_FALSE(is_priced(TrainerKernel::attention));
  EXPECT_FALSE(is_priced(TrainerKernel::attention_backward));
  EXPECT_TRUE(is_priced(TrainerKernel::gemm));
}

// Products that draw more than the limit are slower by the clock they settle at; what streams keeps its rate.
TEST(BlindTimes, PowerLowersTheClock) {
  TrainerModel model;
  model.vocabulary = 8192;
  model.hidden = 4096;
  model.heads = 32;
  model.sequence = 2048;
  model.batch = 4;
  model.type = ElementType::bf16;
  const StepGraph graph = step_graph(model);
  const std::vector<Picos> measured(graph.calls.size(), microseconds(1));
  HardwareProfile free = machine("h100-80gb-1gpu"), limited = free;
  limited.gpu.power_limit_watts = {450.0, {}};
  const BlindTimes fast = blind_times(graph, free, measured), slow = blind_times(graph, limited, measured);
  std::size_t product = 0, addition = 0;
  first(graph, TrainerKernel::gemm, product);
  first(graph, TrainerKernel::add, addition);
  EXPECT_GT(to_seconds(slow.durations[product]), 1.05 * to_seconds(fast.durations[product]));
  EXPECT_LT(to_seconds(slow.durations[addition]), 1.02 * to_seconds(fast.durations[addition]));
}

}  // namespace
}  // namespace spillway::validation
