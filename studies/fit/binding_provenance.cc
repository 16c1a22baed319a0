#include "studies/fit/binding_provenance.h"

#include <algorithm>
#include <string_view>

#include "hwprofiles/profile_leaves.h"

namespace spillway::studies {
namespace {

// Profile leaves that the time of what binds rests on.
std::vector<std::string_view> leaves_behind(Binding binding) {
  switch (binding) {
    case Binding::compute:
      return {"gpu.peak_flops.", "gpu.gemm_efficiency.", "gpu.roofline."};
    case Binding::hbm:
      return {"gpu.memory_bandwidth"};
    case Binding::pcie:
      return {"gpu.host_to_device_bandwidth", "gpu.device_to_host_bandwidth", "host.pcie_payload_efficiency"};
    case Binding::network:
      return {"scale_up.", "scale_out."};
    case Binding::storage:
      return {"drives."};
    case Binding::host:
      return {"host.dispatch_cost", "gpu.launch_call"};
    case Binding::launch_latency:
      return {"gpu.launch_to_start", "gpu.kernel_gap"};
    case Binding::idle:
      break;
  }
  return {};
}

}  // namespace

std::vector<std::string> binding_provenance(const Result& result, const HardwareProfile& hardware) {
  const std::vector<std::string_view> wanted = leaves_behind(result.binding);
  std::vector<std::string> found;
  for (const ProfileLeaf& leaf : leaves_of(hardware)) {
    if (leaf.origin.source.empty()) continue;
    if (std::none_of(wanted.begin(), wanted.end(), [&](std::string_view each) { return leaf.path.starts_with(each); }))
      continue;
    const std::string name(provenance_name(leaf.origin.provenance));
    if (std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  }
  return found;
}

}  // namespace spillway::studies
