#include "models/step/step_clock.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hwprofiles/profile_library.h"
#include "models/spec/model_spec.h"
#include "models/step/trace_generator.h"
#include "sim/replay/replay.h"

namespace spillway::models::step_clock {
namespace {

using sim::replay;
using sim::ReplayOptions;

HardwareProfile with_limit(double watts) {
  HardwareProfile profile = ProfileLibrary::standard().load_system("h100-80gb-1gpu");
  profile.gpu.power_limit_watts = Sourced<double>{watts, {}};
  return profile;
}

Trace step_on(const HardwareProfile& profile, StateDevice optimizer = StateDevice::gpu) {
  ModelSpec model = find_model("llama-3.2-1b");
  model.layers = 4;
  TrainingSetup setup;
  setup.micro_batch = 8;
  setup.sequence = 2048;
  setup.gradient_accumulation = 2;
  setup.optimizer_device = optimizer;
  return generate_trace(model, setup, CostModel(profile));
}

double share_of(const Trace& trace) { return static_cast<double>(trace.powers.front().clock_millionths) * 1e-6; }

double seconds_of(const Trace& trace, const HardwareProfile& profile) {
  return to_seconds(replay(trace, profile, ReplayOptions()).step_time);
}

// A lower limit means a lower clock, a longer step and no more than that limit in the mean.
TEST(StepClock, FollowsTheLimit) {
  double last = 0;
  for (const double watts : {700.0, 500.0, 350.0}) {
    const HardwareProfile profile = with_limit(watts);
    const Trace trace = step_on(profile);
    const double now = seconds_of(trace, profile);
    EXPECT_GT(now, 1.02 * last) << watts;
    last = now;
    const auto power = replay(trace, profile, ReplayOptions()).power;
    ASSERT_TRUE(power);
    EXPECT_LE(power->watts, watts * 1.005);
    EXPECT_NEAR(power->joules, power->watts * now, 1e-3 * power->joules);
    EXPECT_EQ(power->limit_watts, watts);
  }
}

// Stretched once is as good as recorded at that clock: within half a percent of a GPU locked to it.
TEST(StepClock, StretchedOnceIsAsGoodAsRecordedThere) {
  const HardwareProfile profile = with_limit(450);
  const Trace trace = step_on(profile);
  const double share = share_of(trace);
  ASSERT_LT(share, 0.95);
  HardwareProfile locked = with_limit(1e6);
  locked.gpu.locked_clock_mhz = Sourced<double>{1829.5 * share, {}};  // 989 TFLOP/s of 132 x 4,096 flops
  EXPECT_NEAR(seconds_of(step_on(locked), locked) / seconds_of(trace, profile), 1, 0.005);
}

// The GPU waits for the CPU's update long enough that the controller has forgotten it: kernels run at the same clock.
TEST(StepClock, AnUpdateOnTheHostDoesNotRaiseIt) {
  const HardwareProfile profile = with_limit(400);
  const Trace on_gpu = step_on(profile), on_cpu = step_on(profile, StateDevice::cpu);
  ASSERT_LT(share_of(on_gpu), 0.9);
  EXPECT_LE(share_of(on_cpu), share_of(on_gpu));  // whose update, bound by memory, draws less than the passes do
}

// Starts in the generated trace are in order and apart on their stream, as before the stretch.
TEST(StepClock, KernelsDoNotOverlap) {
  const Trace trace = step_on(with_limit(350));
  std::vector<Picos> ends(trace.lanes.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.kind[i] != OpKind::kernel) continue;
    Picos& end = ends[static_cast<std::size_t>(trace.ops.lane[i])];
    EXPECT_GE(trace.ops.start[i], end);
    end = trace.ops.start[i] + trace.ops.duration[i];
  }
  EXPECT_GE(trace.steps.back().duration, *std::max_element(ends.begin(), ends.end()) - trace.steps.back().start);
}

}  // namespace
}  // namespace spillway::models::step_clock
