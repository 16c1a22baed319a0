#include "studies/screen/step_peak.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/step/trace_generator.h"
#include "scenario/scenario_run.h"

namespace spillway::studies {
namespace {

TrainingSetup setup_of(const ModelSpec& model, std::int64_t chunks, std::int64_t zero, std::int64_t accumulation) {
  TrainingSetup setup;
  setup.framework = Framework::megatron_2022;
  setup.sequence = 1024;
  setup.pipeline_parallel = 2;
  setup.pipeline_chunks = chunks;
  setup.data_parallel = 2;
  setup.micro_batch = 4;
  setup.gradient_accumulation = accumulation;
  setup.zero_stage = zero;
  setup.recompute = chunks == 1 ? Recompute::full : Recompute::none;
  return resolve(setup, model);
}

// What a stage allocates is the whole step's, event for event, with its start-up.
TEST(StepPeak, AStageAloneAllocatesAsInTheStep) {
  const ModelSpec model = find_model("gpt2-small");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  for (const std::int64_t chunks : {1, 2})
    for (const std::int64_t zero : {0, 1, 2, 3}) {
      const TrainingSetup setup = setup_of(model, chunks, zero, 6);
      const Trace whole = generate_trace(model, setup, cost, machine.cluster);
      for (std::int16_t stage = 0; stage < 2; ++stage) {
        const Trace alone = generate_stage_trace(model, setup, cost, machine.cluster, stage);
        std::vector<const MemoryEvent*> wanted;
        for (const MemoryEvent& event : whole.memory_events)
          if (event.device == stage) wanted.push_back(&event);
        ASSERT_EQ(alone.memory_events.size(), wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const MemoryEvent& event = alone.memory_events[i];
          ASSERT_EQ(event.device, 0);
          ASSERT_EQ(event.action, wanted[i]->action);
          ASSERT_EQ(event.bytes, wanted[i]->bytes);
          ASSERT_EQ(event.address, wanted[i]->address);
        }
        std::size_t started = 0;
        for (const StartUpEvent& event : whole.start_up) started += event.device == stage ? 1 : 0;
        EXPECT_EQ(alone.start_up.size(), started);
      }
    }
}

double share(Bytes one, Bytes of) { return static_cast<double>(one.count()) / static_cast<double>(of.count()); }

// Of many micro-batches a few rounds are run, and what the step reserves is met to the byte; under a limit, which has
// the allocator give cached segments back in every round, to 1 %.
TEST(StepPeak, IsTheReplaysOfManyMicroBatches) {
  const ModelSpec model = find_model("gpt2-small");
  const HardwareProfile hardware = ProfileLibrary::standard().load_system("dgx-a100");
  const CostModel cost(hardware);
  const StepMachine machine(model, hardware, cost);
  bool gave_back = false;
  for (const std::int64_t chunks : {1, 2})
    for (const std::int64_t zero : {0, 1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << "chunks " << chunks << " zero " << zero);
      const TrainingSetup setup = setup_of(model, chunks, zero, 32);
      const StepShape plain = measure_shape(machine, plain_setup(shape_setup(setup)));
      const StepShape shape = measure_shape(machine, shape_setup(setup), zero < 2 ? nullptr : &plain);
      StepPeaks peaks;
      const StepPeak peak = peaks.peak(machine, shape, setup, Bytes(0));
      const Trace trace = generate_trace(model, setup, cost, machine.cluster);
      ReplayOptions options = machine.options;
      const Result result = replay(trace, hardware, options);
      EXPECT_EQ(peak.reserved, result.memory.peak_reserved);
      EXPECT_NEAR(share(peak.allocated, result.memory.peak_allocated), 1, 1e-4);
      for (const std::int64_t sixteenths : {8, 12, 14, 15}) {
        options.memory.capacity = peak.allocated + (peak.reserved - peak.allocated) * sixteenths / 16;
        const Result tight = replay(trace, hardware, options);
        if (tight.memory.out_of_memory || !tight.memory.gives_back) continue;
        gave_back = true;
        StepPeaks limited;
        const StepPeak held = limited.peak(machine, shape, setup, options.memory.capacity);
        EXPECT_NEAR(share(held.reserved, tight.memory.peak_reserved), 1, 0.01);
      }
    }
  EXPECT_TRUE(gave_back);
}

}  // namespace
}  // namespace spillway::studies
