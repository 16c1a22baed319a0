// The same machine with one thing faster: what explain() replays.
#pragma once

#include <cstdint>

#include "hwprofiles/hardware_profile.h"

namespace spillway {

// Drives that never bind: every rate beyond any link's, no latency, no write cache, no interference. Their slots
// stay as they are.
HardwareProfile with_endless_drives(HardwareProfile hardware);

// Every link between GPUs, host memory and drives `factor` times as fast: what a lane carries, measured rates,
// stated bandwidths, sockets and host DRAM. NVLink, HBM and the drives stay. Precondition: 1 <= factor <= endless.
inline constexpr std::int64_t endless = 1024;
HardwareProfile with_faster_links(HardwareProfile hardware, std::int64_t factor);

}  // namespace spillway
