// NUMA nodes near to PCI functions, as Portable Hardware Locality (hwloc) sees them: it knows of machines with firmware
// that tells sysfs nothing, and of virtual ones.
//
// A spillway built without libhwloc has hwloc_absent.cc in its place, and sysfs alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hwprofiles/calibrate/pcie_topology.h"

namespace spillway::hwprofiles {

// By function: "0000:1b:00.0". Only functions near to one node; empty where hwloc is not built in or can't look.
// O(machine).
std::map<std::string, std::int64_t> hwloc_numa_nodes();
bool has_hwloc();

// Nodes of the functions that sysfs tells none of (PcieFunction::knows_numa); returns how many it has set.
std::size_t add_numa_nodes(std::vector<PcieFunction>& functions, const std::map<std::string, std::int64_t>& nodes);

}  // namespace spillway::hwprofiles
