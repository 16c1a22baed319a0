#include "hwprofiles/calibrate/hwloc_locality.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <memory>

namespace spillway::hwprofiles {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

}  // namespace

bool has_hwloc() { return true; }

std::map<std::string, std::int64_t> hwloc_numa_nodes() {
  std::map<std::string, std::int64_t> nodes;
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nodes;
  const std::unique_ptr<hwloc_topology, DestroyTopology> topology(made);
  // What sysfs shows of PCI is enough; the others load whole driver stacks (OpenCL's brings LLVM), and libpciaccess
  // leaks.
  for (const char* const component : {"pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(made) != 0) return nodes;
  for (hwloc_obj_t device = hwloc_get_next_pcidev(made, nullptr); device != nullptr;
       device = hwloc_get_next_pcidev(made, device)) {
    const auto& pci = device->attr->pcidev;
    hwloc_obj* near = hwloc_get_non_io_ancestor_obj(made, device);
    if (near != nullptr && near->nodeset != nullptr && hwloc_bitmap_weight(near->nodeset) == 1)
      nodes[fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func)] =
          hwloc_bitmap_first(near->nodeset);
  }
  return nodes;
}

}  // namespace spillway::hwprofiles
