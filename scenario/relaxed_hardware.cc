#include "scenario/relaxed_hardware.h"

#include "base/input_error.h"

namespace spillway::scenario {
namespace {

void multiply(Rate& rate, double factor) { rate = rate_from_bytes_per_second(to_bytes_per_second(rate) * factor); }
void multiply(Maybe<Rate>& rate, double factor) {
  if (rate) multiply(rate->value, factor);
}

}  // namespace

HardwareProfile with_endless_drives(HardwareProfile hardware) {
  const Rate rate = rate_from_bytes_per_second(1e13);
  for (DriveGroup& group : hardware.drives) {
    NvmeProfile& drive = group.drive;
    if (!drive.read_bandwidth || !drive.write_bandwidth) continue;  // nvme_model() will say so
    drive.read_bandwidth = Sourced<Rate>{rate, {}};
    drive.write_bandwidth = Sourced<Rate>{rate, {}};
    drive.steady_write_bandwidth = drive.folding_write_bandwidth = {};
    drive.write_cache = drive.folding_bytes = {};
    drive.read_latency = drive.write_latency = {};
    drive.read_efficiency = drive.write_efficiency = {};
    drive.read_write_interference = {};
  }
  return hardware;
}

HardwareProfile with_faster_links(HardwareProfile hardware, double factor) {
  SPILLWAY_ASSERT(factor > 0 && factor <= endless);
  GpuProfile& gpu = hardware.gpu;
  multiply(gpu.cpu_link_bandwidth, factor);
  multiply(gpu.host_to_device_bandwidth, factor);
  multiply(gpu.device_to_host_bandwidth, factor);
  multiply(gpu.duplex_bandwidth, factor);
  multiply(hardware.host.dram_bandwidth.value, factor);
  multiply(hardware.host.socket_bandwidth, factor);
  for (PcieNode& node : hardware.host.pcie) {
    multiply(node.bandwidth, factor);
    multiply(node.duplex_bandwidth, factor);
  }
  hardware.host.pcie_payload_efficiency.value *= factor;  // of lanes without a rate of their own
  return hardware;
}

}  // namespace spillway::scenario
