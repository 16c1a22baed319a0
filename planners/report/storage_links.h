// What a machine's links let its GPUs write to and read from drives, all of them at once.
//
// Measured on the simulated machine itself (sim/devices/machine.h): every GPU moves the same bytes to its drive set,
// caches empty; the slowest one counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "sim/devices/machine.h"

namespace spillway {

struct LinkShare {
  std::string name;
  Rate capacity{};
  double write = 0, read = 0;  // bytes on the link per byte that each GPU writes or reads
};

struct StorageLinks {
  Rate write{}, read{};  // of each GPU
  std::vector<LinkShare> links;
};

// The profile with `count` drives for each of `gpus` GPUs, a RAID-0 set for each, instead of its own.
HardwareProfile with_drives(const HardwareProfile& hardware, const NvmeProfile& drive, std::int64_t count,
                            std::int64_t gpus);

// GPU i uses drive set i modulo their number. Throws InputError when there are no drives or they state no rates.
// Precondition: 1 <= gpus <= hardware.gpu_count.
StorageLinks storage_links(const HardwareProfile& hardware, std::int64_t gpus, DriveRoute route);

}  // namespace spillway
