// Parts of a step that are replayed as CUDA graphs allocate from a pool of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/step/trace_generator.h"
#include "sim/devices/memory/allocation_stream.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"
#include "traces/graph_pool.h"

namespace spillway::models::graph_pool {
namespace {

ModelSpec small_llama() {
  ModelSpec model = find_model("llama-3-8b");
  model.layers = 4, model.hidden = 1024, model.heads = 8, model.kv_heads = 4, model.head_dim = 128;
  model.feed_forward = 4096, model.vocabulary = 4096;
  return model;
}

Trace generate(const std::string& graphs, bool pool, std::int64_t stages = 1) {
  TrainingSetup setup{.micro_batch = 2,
                      .sequence = 1024,
                      .gradient_accumulation = 4,
                      .loss = LossForm::fused,
                      .framework = Framework::megatron,
                      .pipeline_parallel = stages};
  setup.cuda_graphs = graphs;
  setup.graph_pool = pool;
  Trace trace = generate_trace(small_llama(), setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

std::int64_t pooled(const Trace& trace, std::string_view name) {
  std::int64_t count = 0;
  for (const MemoryEvent& event : trace.memory_events)
    if (event.action == MemoryAction::allocate && traces::is_graph_pool(trace, event.stream) &&
        trace.strings.text(trace.tensors.name[index_of(event.tensor)]).find(name) != std::string_view::npos)
      ++count;
  return count;
}

TEST(GraphPool, HoldsWhatCapturedPartsAllocate) {
  const Trace attention = generate("attn", true), both = generate("attn,mlp", true);
  EXPECT_GT(pooled(attention, "attention."), 0);
  EXPECT_EQ(pooled(attention, "mlp."), 0);
  EXPECT_GT(pooled(both, "mlp."), 0);
  EXPECT_EQ(pooled(both, "loss"), 0);
  EXPECT_EQ(pooled(both, "embedding"), 0);
  EXPECT_EQ(pooled(generate("attn,mlp", false), ""), 0);
  EXPECT_EQ(pooled(generate("full_iteration", true), ""), 0);  // all in one pool anyway
}

sim::AllocationStreamResult allocate(const Trace& trace, Bytes device = Bytes::max()) {
  sim::AllocationStreamOptions options;
  options.pool.policy = "torch";
  options.pool.device_memory = device;
  return sim::replay_allocation_stream(trace, options);
}

// Most bytes alive at once of the graphs' tensors, or of the others.
std::int64_t peak_of(const Trace& trace, bool of_graphs) {
  std::int64_t live = 0, peak = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.device != 0 || traces::is_graph_pool(trace, event.stream) != of_graphs) continue;
    if (event.action == MemoryAction::allocate) peak = std::max(peak, live += event.bytes.count());
    if (event.action == MemoryAction::free_requested) live -= event.bytes.count();
  }
  return peak;
}

// The same tensors; but blocks of one pool never serve the other: both pools' own peaks are reserved, though they come
// at different times.
TEST(GraphPool, IsNotShared) {
  for (const std::int64_t stages : {1, 2}) {
    const Trace trace = generate("mlp", true, stages);
    const sim::AllocationStreamResult apart = allocate(trace), shared = allocate(generate("mlp", false, stages));
    const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    EXPECT_NEAR(mib(apart.statistics.all().allocated_bytes.peak), mib(shared.statistics.all().allocated_bytes.peak), 8);
    const std::int64_t both = peak_of(trace, true) + peak_of(trace, false);
    EXPECT_GE(apart.statistics.all().reserved_bytes.peak, both);
    EXPECT_LT(shared.statistics.all().allocated_bytes.peak, both);
  }
}

// Retrying for lack of memory gives cached segments back to the driver, but none of the graphs'.
TEST(GraphPool, IsKeptWhenMemoryRunsShort) {
  const Trace trace = generate("attn", true);
  const sim::AllocationStreamResult all = allocate(trace);
  const sim::AllocationStreamResult less =
      allocate(trace, Bytes(all.statistics.all().reserved_bytes.peak - (std::int64_t{64} << 20)));
  const auto of_graphs = [](const sim::PoolState& state) {
    std::int64_t bytes = 0;
    for (const sim::SegmentState& segment : state.segments)
      if (segment.private_pool != 0) bytes += segment.total.count();
    return bytes;
  };
  EXPECT_GT(of_graphs(all.final_state), 0);
  EXPECT_EQ(of_graphs(less.final_state), of_graphs(all.final_state));
}

}  // namespace
}  // namespace spillway::models::graph_pool
