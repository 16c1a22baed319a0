// The same machine with one thing faster (or slower): what explain() and a scenario's what_if.pcie replay.
#pragma once

#include "hwprofiles/hardware_profile.h"

namespace spillway::scenario {

// Drives that never bind: every rate beyond any link's, no latency, no write cache, no interference. Their slots
// stay as they are.
HardwareProfile with_endless_drives(HardwareProfile hardware);

// Every link between GPUs, host memory and drives `factor` times as fast: what a lane carries, measured rates,
// stated bandwidths, sockets and host DRAM. NVLink, HBM and the drives stay. Precondition: 0 < factor <= endless.
inline constexpr double endless = 1024;
HardwareProfile with_faster_links(HardwareProfile hardware, double factor);

}  // namespace spillway::scenario
