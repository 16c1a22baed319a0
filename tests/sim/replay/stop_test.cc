#include "base/stop.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/byte_source.h"
#include "hwprofiles/profile_library.h"
#include "models/step/trace_generator.h"
#include "sim/replay/replay.h"

namespace spillway::sim {
namespace {

struct SmallStep {
  HardwareProfile hardware = ProfileLibrary::shared().load_system("rtx-4090");
  Cluster cluster{1, {}};
  [[nodiscard]] Trace trace() const {
    TrainingSetup setup;
    setup.sequence = 128;
    return generate_trace(find_model("gpt2-small"), setup, CostModel(hardware), cluster);
  }
};

// What is asked to stop before it begins does nothing; afterwards the thread works as before.
TEST(Stop, EveryLongPartStops) {
  const SmallStep step;
  const Trace trace = step.trace();
  {
    const std::atomic<bool> wanted = true;
    const StopScope scope(&wanted);
    EXPECT_THROW(static_cast<void>(step.trace()), Cancelled);
    EXPECT_THROW(static_cast<void>(replay(trace, step.hardware, {})), Cancelled);
    EXPECT_THROW(static_cast<void>(MemoryReplay(trace, {})), Cancelled);
    EXPECT_THROW(static_cast<void>(planned_trace(trace, {})), Cancelled);
    EXPECT_EQ(current_stop(), &wanted);
  }
  EXPECT_EQ(current_stop(), nullptr);
  EXPECT_GT(replay(trace, step.hardware, {}).step_time, Picos(0));
}

// A flag belongs to the thread whose scope it is.
TEST(Stop, OtherThreadsGoOn) {
  const std::atomic<bool> wanted = true;
  const StopScope scope(&wanted);
  std::thread other([] { EXPECT_NO_THROW(check_stop()); });
  other.join();
  EXPECT_THROW(check_stop(), Cancelled);
}

// Replays without end until the flag is set from outside; hangs if nothing looks at it.
TEST(Stop, FromOutside) {
  const SmallStep step;
  const Trace trace = step.trace();
  std::atomic<bool> wanted = false, begun = false, stopped = false;
  std::thread worker([&] {
    const StopScope scope(&wanted);
    try {
      for (;;) {
        static_cast<void>(replay(trace, step.hardware, {}));
        begun = true;
      }
    } catch (const Cancelled&) {
      stopped = true;
    }
  });
  while (!begun) std::this_thread::yield();
  wanted = true;
  worker.join();
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace spillway::sim
