// The PCIe tree of this machine as sysfs shows it: ports, switches, GPUs, drives, network cards, links.
//
//   /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:04.0/0000:03:00.0
//                host bridge root port    switch, up   switch, down GPU
//
// A link belongs to its lower function. Its generation is the best that both ends can do, because idle devices train
// theirs down to save power; its width is the one in use. Devices without a link (functions of the processor itself,
// virtual ones) have 0 and 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwprofiles/calibrate/nvml.h"
#include "hwprofiles/host_profile.h"

namespace spillway::hwprofiles {

enum class PcieFunctionKind : std::uint8_t { port, switch_up, switch_down, gpu, drive, network, other };
std::string_view to_string(PcieFunctionKind kind);

struct PcieFunction {
  std::string address;            // "0000:03:00.0"
  std::optional<std::size_t> up;  // index of the function above; none: on the host bridge
  PcieFunctionKind kind = PcieFunctionKind::other;
  std::string name;    // model, interface or driver, as far as known
  std::string bridge;  // "pci0000:00"
  std::int64_t numa_node = 0;
  bool knows_numa = false;  // else 0 is assumed
  std::int64_t generation = 0, lanes = 0;
  std::int64_t widest = 0;  // lanes that the function could use
};

// Parents first, by address; functions that carry neither a device nor another function are left out unless `all`.
// Throws InputError when there is no PCI in this sysfs.
std::vector<PcieFunction> pcie_topology(const std::string& sysfs = "/sys", bool all = false);

// Names of GPUs, and their links where sysfs shows none.
void add_nvml(std::vector<PcieFunction>& functions, const std::vector<NvmlGpu>& gpus);

struct HostFit {
  HostProfile profile;
  std::vector<std::string> notes;  // what has no link, what runs narrower than it could
};

// The tree with one root complex per NUMA node ("cpu0"), switches and slots. Sockets, cores and DRAM from sysfs; what
// it does not show (bandwidths of DRAM, dispatch cost, ...) stays as in `base`, with its sources. `date`: ISO 8601.
HostFit fit_host(const std::vector<PcieFunction>& functions, const HostProfile& base, const std::string& date,
                 const std::string& sysfs = "/sys");

}  // namespace spillway::hwprofiles
