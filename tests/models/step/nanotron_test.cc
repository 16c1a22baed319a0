// nanotron's steps: gradients in fp32 buffers, those of a micro-batch until its backward ends, buckets between
// replicas.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/input_error.h"
#include "models/step/host_times.h"
#include "models/step/trace_generator.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"

namespace spillway::models::nanotron {
namespace {

Trace generate(TrainingSetup setup) {
  ModelSpec model = find_model("llama-3-8b");
  model.layers = 2;
  model.hidden = 256;
  model.heads = model.kv_heads = 4;
  model.head_dim = 64;
  model.feed_forward = 512;
  model.vocabulary = 1024;
  setup.sequence = 128;
  setup.framework = Framework::nanotron;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

std::int64_t bytes_of(const Trace& trace, TensorRole role) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    if (trace.tensors.role[i] == role) bytes += trace.tensors.bytes[i].count();
  return bytes;
}

// 4 bytes of gradient for 2 of weights; buckets as large as the weights where there are replicas.
TEST(Nanotron, ReplicasHoldTheirGradientsOnceMore) {
  TrainingSetup setup{.micro_batch = 1, .data_parallel = 2, .zero_stage = 1};
  const Trace two = generate(setup);
  setup.data_parallel = 1;
  setup.pipeline_parallel = 2;
  const Trace one = generate(setup);
  const auto buckets = [](const Trace& trace) {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      if (trace.strings.text(trace.tensors.name[i]) == "gradient.buckets") bytes += trace.tensors.bytes[i].count();
    return bytes;
  };
  EXPECT_EQ(buckets(two), bytes_of(two, TensorRole::weight));
  EXPECT_EQ(buckets(one), 0);
}

// Once a step, with the GPU idle, each rank's host is busy with what lies between two steps.
TEST(Nanotron, PausesBetweenSteps) {
  const Trace trace = generate({.micro_batch = 1, .gradient_accumulation = 3, .data_parallel = 2, .zero_stage = 1});
  EXPECT_EQ(count_of(trace, "between steps"), trace.rank_count);
  const Picos step = sim::replay(trace, example_profile(), sim::ReplayOptions()).step_time;
  EXPECT_GT(step, between_steps);
  EXPECT_LT(step, 2 * between_steps);  // the rest of so small a step
}

// All of a micro-batch's gradients in 16 bits are there when its backward ends.
TEST(Nanotron, GradientsStayUntilTheBackwardEnds) {
  const Trace trace = generate({.micro_batch = 1, .data_parallel = 2, .zero_stage = 1});
  std::int64_t live = 0, most = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.action == MemoryAction::free_completed || event.device != 0) continue;
    const std::string_view name = trace.strings.text(trace.tensors.name[index_of(event.tensor)]);
    if (!name.ends_with(".weight.grad") || trace.tensors.role[index_of(event.tensor)] != TensorRole::gradient) continue;
    live += event.action == MemoryAction::allocate ? event.bytes.count() : -event.bytes.count();
    most = std::max(most, live);
  }
  EXPECT_GE(most, bytes_of(trace, TensorRole::weight));
}

TEST(Nanotron, SharesOutStatesAlone) {
  EXPECT_THROW(generate({.micro_batch = 1, .data_parallel = 2, .zero_stage = 2}), InputError);
}

}  // namespace
}  // namespace spillway::models::nanotron
