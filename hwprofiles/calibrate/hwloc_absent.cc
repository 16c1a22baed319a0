// In place of hwloc_locality.cc where the build found no libhwloc.
#include "hwprofiles/calibrate/hwloc_locality.h"

namespace spillway::hwprofiles {

bool has_hwloc() { return false; }
std::map<std::string, std::int64_t> hwloc_numa_nodes() { return {}; }

}  // namespace spillway::hwprofiles
