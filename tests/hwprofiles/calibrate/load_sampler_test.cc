#include "hwprofiles/calibrate/load_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace spillway::hwprofiles {
namespace {

LoadSample sample(unsigned watts, unsigned mhz, std::uint64_t reasons = 0) {
  LoadSample made;
  made.state.milliwatts = watts * 1000;
  made.state.sm_clock_mhz = mhz;
  made.state.throttle_reasons = reasons;
  return made;
}

// Of eight samples the two with the most power are under load: 700 W and 690 W; their clocks' upper median is 1,500
// MHz. Bit 4 is the power limit; the idle one's reasons don't count.
TEST(LoadedState, IsThatOfTheHighestPower) {
  const LoadedState loaded =
      loaded_state({sample(100, 1980, 0x20), sample(700, 1410, 0x4), sample(120, 1980), sample(690, 1500, 0x4),
                    sample(110, 1980), sample(300, 1980), sample(90, 345, 0x1), sample(200, 1980)});
  EXPECT_EQ(loaded.milliwatts, 700'000U);
  EXPECT_EQ(loaded.sm_clock_mhz, 1500U);
  EXPECT_THAT(loaded.limited_by, testing::ElementsAre("power"));
}

TEST(LoadedState, NothingToldIsNothingKnown) {
  const LoadedState loaded = loaded_state({LoadSample{}});
  EXPECT_EQ(loaded.milliwatts, 0U);
  EXPECT_EQ(loaded.sm_clock_mhz, 0U);
  EXPECT_THAT(loaded.limited_by, testing::IsEmpty());
}

// The stand-in of NVML tells 1,980 MHz and 123.456 W at any time.
TEST(LoadSampler, AsksUntilItIsStopped) {
  const std::optional<Nvml> nvml = Nvml::load(SPILLWAY_FAKE_NVML);
  ASSERT_TRUE(nvml.has_value());
  LoadSampler sampler(*nvml, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const std::vector<LoadSample> samples = sampler.stop();
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples.front().state.sm_clock_mhz, 1980U);
  EXPECT_EQ(loaded_state(samples).milliwatts, 123'456U);
}

}  // namespace
}  // namespace spillway::hwprofiles
