#include "planners/offload/tier_rates.h"

#include <algorithm>

#include "sim/devices/nvme_drive.h"

namespace spillway::planners {
namespace {

double link_rate(const HardwareProfile& hardware, const Maybe<Rate>& measured) {
  if (measured) return to_bytes_per_second(measured->value);
  const GpuProfile& gpu = hardware.gpu;
  return to_bytes_per_second(pcie_raw_rate(gpu.pcie_generation.value, gpu.pcie_lanes.value)) *
         hardware.host.pcie_payload_efficiency.value;
}

}  // namespace

TierRates tier_rates(const HardwareProfile& hardware, Tier tier, std::int64_t gpus) {
  const TierRates link{link_rate(hardware, hardware.gpu.device_to_host_bandwidth),
                       link_rate(hardware, hardware.gpu.host_to_device_bandwidth)};
  if (tier == Tier::host || hardware.drives.empty()) return link;
  double write = 0, read = 0;
  for (const DriveGroup& group : hardware.drives) {
    const NvmeModel drive = nvme_model(group.drive);
    write += to_bytes_per_second(drive.steady_write) * static_cast<double>(group.count);
    read += to_bytes_per_second(drive.read) * static_cast<double>(group.count);
  }
  const auto sharing =
      static_cast<double>(std::clamp<std::int64_t>(gpus, 1, std::max<std::int64_t>(1, hardware.gpu_count)));
  return {std::min(link.store, write / sharing), std::min(link.load, read / sharing)};
}

}  // namespace spillway::planners
