#include "hwprofiles/host_profile.h"

#include <array>

#include "base/input_error.h"
#include "hwprofiles/network_profile.h"

namespace spillway::hwprofiles {

std::string_view pcie_node_kind_name(PcieNodeKind kind) {
  static constexpr std::string_view names[] = {"root_complex", "switch", "gpu_slot", "drive_slot", "nic_slot"};
  return names[static_cast<std::size_t>(kind)];
}

Rate pcie_raw_rate(std::int64_t generation, std::int64_t lanes) {
  SPILLWAY_ASSERT(generation >= 1 && generation <= 7 && lanes >= 1 && lanes <= 32);
  // Per lane and direction: transfers a second / 8 after line coding (8b/10b, 128b/130b, then PAM4 flits).
  static constexpr std::array<double, 8> lane = {
      0,          2.5e9 / 8 * 8 / 10, 5e9 / 8 * 8 / 10, 8e9 / 8 * 128 / 130, 16e9 / 8 * 128 / 130, 32e9 / 8 * 128 / 130,
      121e9 / 16, 242e9 / 16};
  return rate_from_bytes_per_second(lane[static_cast<std::size_t>(generation)] * static_cast<double>(lanes));
}

std::string_view network_topology_name(NetworkTopology topology) {
  static constexpr std::string_view names[] = {"fully_switched", "ring", "mesh"};
  return names[static_cast<std::size_t>(topology)];
}

std::string_view collective_kind_name(NetworkCollective kind) {
  static constexpr std::string_view names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                               "all_to_all", "broadcast",  "send_receive"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace spillway::hwprofiles
