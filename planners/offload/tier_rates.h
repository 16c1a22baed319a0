// A tier's rates for one GPU, for timing and ranking transfers before a replay says what they take.
#pragma once

#include <cstdint>

#include "hwprofiles/hardware_profile.h"
#include "sim/replay/offload_plan.h"

namespace spillway::planners {

// Bytes a second with the way to oneself; drives shared by `gpus` of the machine, at their steady write rate.
struct TierRates {
  double store = 0, load = 0;
};
// Precondition: tier is host or drive. Without drives a drive tier has the host's rates.
TierRates tier_rates(const HardwareProfile& hardware, Tier tier, std::int64_t gpus);

}  // namespace spillway::planners
