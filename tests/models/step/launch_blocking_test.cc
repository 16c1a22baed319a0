// CUDA_LAUNCH_BLOCKING=1: each launch returns when its kernel has ended.
#include <string_view>

#include <gtest/gtest.h>

#include "models/spec/model_spec.h"
#include "models/step/host_times.h"
#include "models/step/trace_generator.h"
#include "sim/replay/replay.h"
#include "tests/models/example_profile.h"
#include "tests/models/step/measured_trace.h"
#include "traces/capture_fit.h"

namespace spillway::models::launch_blocking {
namespace {

Trace step_of(TrainingSetup setup, bool blocks) {
  ModelSpec model = find_model("gpt2-small");
  model.layers = 2, model.vocabulary = 1024;
  setup.sequence = 128;
  setup.micro_batch = 2;
  setup.gradient_accumulation = 3;
  setup.launch_blocking = blocks;
  Trace trace = generate_trace(model, setup, CostModel(example_profile()), flat_cluster());
  trace.check_invariants();
  return trace;
}

Picos replayed(const Trace& trace) { return sim::replay(trace, example_profile(), sim::ReplayOptions()).step_time; }

// Calls of PyTorch around a kernel that launch nothing: 3 for a linear layer's product and 4 for each of its
// backward's, 16 and 42 for attention's heads and positions.
double views_of(std::string_view kernel) {
  if (kernel == "gemm") return 3;
  if (kernel == "gemm_dgrad" || kernel == "gemm_wgrad") return 4;
  return kernel == "flash_attention" ? 16 : kernel == "flash_attention_backward" ? 42 : 0;
}

// On one GPU the step is the sum of its parts: the host's time for each kernel and, unless compiled, its module and
// views, the way to the GPU, the kernel, the way back.
TEST(LaunchBlocking, HidesNothing) {
  const HardwareProfile profile = example_profile();
  for (const bool compile : {false, true}) {
    const TrainingSetup setup{.compile = compile};
    const Trace trace = step_of(setup, true);
    Picos parts{};
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      if (trace.ops.kind[i] != OpKind::kernel) continue;
      const double views = view_share * views_of(trace.strings.text(trace.ops.name[i]));
      const double host = compile ? 1 : module_factor * (1 + views);
      parts += from_seconds(host * to_seconds(profile.host.dispatch_cost.value)) + profile.gpu.launch_to_start.value +
               trace.ops.duration[i] + traces::sync_return;
    }
    const double expected = to_seconds(parts);
    EXPECT_NEAR(to_seconds(replayed(trace)), expected, 0.02 * expected);
    EXPECT_LT(to_seconds(replayed(step_of(setup, false))), 0.8 * expected);
  }
}

// A CUDA graph is one launch, whose kernels wait for nobody's host.
TEST(LaunchBlocking, LeavesGraphsAlone) {
  const TrainingSetup setup{.cuda_graphs = "full_iteration"};
  const Picos free = replayed(step_of(setup, false)), blocked = replayed(step_of(setup, true));
  EXPECT_GT(blocked, free);  // the update is outside
  EXPECT_LT(blocked - free, (replayed(step_of({}, true)) - replayed(step_of({}, false))) / 2);
}

// Partners of an exchange wait for each other's calls, which wait for the exchange: the step runs all the same.
TEST(LaunchBlocking, ExchangesMeet) {
  for (const Framework framework : {Framework::eager, Framework::megatron_2021, Framework::megatron}) {
    TrainingSetup setup{.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2};
    setup.framework = framework;
    setup.zero_stage = 1;
    const Picos free = replayed(step_of(setup, false)), blocked = replayed(step_of(setup, true));
    EXPECT_GT(blocked, free) << to_string(framework);
    EXPECT_LT(blocked, 4 * free) << to_string(framework);
  }
}

}  // namespace
}  // namespace spillway::models::launch_blocking
