// How long drives live under the writes of a replayed step.
#pragma once

#include "hwprofiles/hardware_profile.h"
#include "models/endurance.h"
#include "sim/replay/result.h"

namespace spillway {

// Fills DriveTraffic::life of every drive set the result has traffic of: endurance of all drives of the set, which a
// RAID-0 set wears evenly, over the mean rate of writing. Sets the hardware doesn't know are left alone.
void rate_drives(const HardwareProfile& hardware, const EnduranceOptions& options, Result& result);

// The shortest of the drive sets' lives, in years; infinity when nothing is written or nothing is rated.
double shortest_life_years(const Result& result);

}  // namespace spillway
