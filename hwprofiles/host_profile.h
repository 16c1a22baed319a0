// The machine around the GPUs: processors, DRAM and the PCIe tree.
//
//   root complex (cpu0) ── uplink ── switch (sw0) ── link ── slot gpu0   holds a GPU
//                                                 ── link ── slot nvme0  holds a drive
//                                                 ── link ── slot nic0   holds a NIC
//
// Nodes are listed parents first; `up` is the index of the parent. A link belongs to its lower node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

enum class PcieNodeKind { root_complex, pcie_switch, gpu_slot, drive_slot, nic_slot };
std::string_view pcie_node_kind_name(PcieNodeKind kind);

struct PcieNode {
  std::string name;
  PcieNodeKind kind = PcieNodeKind::root_complex;
  std::optional<std::size_t> up;  // index into HostProfile::pcie; none for a root complex
  // The link to `up`; absent for a root complex.
  Maybe<std::int64_t> generation, lanes;
  // Per direction after protocol overhead; absent: raw rate x payload efficiency.
  Maybe<Rate> bandwidth;
  // Both directions together; absent: no limit beyond each direction.
  Maybe<Rate> duplex_bandwidth;
};

struct HostProfile {
  std::string name, title, cpu_model, note;
  Sourced<std::int64_t> sockets, cores;  // cores over all sockets
  Sourced<Bytes> dram;
  Sourced<Rate> dram_bandwidth;             // all sockets together, reads plus writes
  Maybe<Rate> socket_bandwidth;             // between sockets, per direction
  Sourced<double> pcie_payload_efficiency;  // (0, 1]: large pinned copies over the raw link rate
  // DRAM bytes moved per byte that passes through a host buffer on the way to or from a drive.
  Sourced<double> bounce_copies;
  Sourced<Rate> memcpy_bandwidth;  // one thread filling a pinned buffer
  // Time of the host per operator a framework dispatches, for traces that carry no launch times.
  Sourced<Picos> dispatch_cost;
  // Host time in a framework's deep Python (Megatron-core), over that of processes pinned to their cores; absent: 1.
  Maybe<double> framework_slowdown;
  // Fused optimizer on the CPU, parameters a second over all cores.
  Maybe<double> cpu_adam_parameters_per_second;
  std::vector<PcieNode> pcie;
  Maybe<double> power_watts, price_usd;
};

// Raw rate per direction of a PCIe link after line coding, before packet overhead.
// Generations 1 to 7, lanes 1 to 32. x16 gives 15.75, 31.5, 63 GB/s for generations 3 to 5; 121 GB/s for 6
// (after flit overhead), twice that for 7.
Rate pcie_raw_rate(std::int64_t generation, std::int64_t lanes);

}  // namespace spillway::hwprofiles
