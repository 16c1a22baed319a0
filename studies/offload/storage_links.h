// Rates at which a machine's links let its GPUs write to and read from drives, all of them at once.
//
// Measured on the simulated machine itself (sim/devices/machine.h): every GPU moves its bytes to its drive set, caches
// empty; the slowest one counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "sim/devices/machine.h"

namespace spillway::studies {

// A GPU's writes and reads, over those of the GPU that writes most.
struct GpuShare {
  double write = 1, read = 1;
};

struct LinkShare {
  std::string name;
  Rate capacity{};
  double write = 0, read = 0;  // bytes on the link per byte that the GPU that writes most writes or reads
};

struct StorageLinks {
  Rate write{}, read{};  // of the GPU that writes most, all at once
  std::vector<LinkShare> links;
};

inline constexpr std::int64_t common_switch_lanes = 96, switch_lanes_up = 16;

// The profile with `sets` RAID-0 sets of `count` drives instead of the machine's: one for each GPU, or one for all.
// Drives beyond the host's slots hang from added switches. A switch has 16 lanes up to where the slots they stand
// beside are, the rest of `switch_lanes` down, as many below each such place as its drives' lanes need.
HardwareProfile with_drives(const HardwareProfile& hardware, const NvmeProfile& drive, std::int64_t count,
                            std::int64_t sets, std::int64_t switch_lanes = common_switch_lanes);
// The switches that with_drives() added. O(nodes).
std::int64_t added_switches(const HardwareProfile& hardware);

// GPU i uses drive set i modulo their number. Throws InputError when there are no drives or they state no rates.
// gpus: of the machine's first GPUs, what each moves. Precondition: 1 to hardware.gpu_count of them, one share above 0.
StorageLinks storage_links(const HardwareProfile& hardware, const std::vector<GpuShare>& gpus, DriveRoute route);
// The same bytes for each of so many.
StorageLinks storage_links(const HardwareProfile& hardware, std::int64_t gpus, DriveRoute route);

}  // namespace spillway::studies
