// A machine for tests of models: round numbers in the range of one H100, nothing from files.
#pragma once

#include "hwprofiles/hardware_profile.h"

namespace spillway::models {

inline HardwareProfile example_profile() {
  const auto index = [](Precision precision) { return static_cast<std::size_t>(precision); };
  HardwareProfile profile;
  GpuProfile& gpu = profile.gpu;
  gpu.name = "example";
  gpu.title = "Example GPU";
  gpu.memory.value = Bytes(80'000'000'000);
  gpu.memory_bandwidth.value = rate_from_bytes_per_second(3e12);
  gpu.peak_flops_per_second[index(Precision::bf16)] = {.value = 1e15};
  gpu.peak_flops_per_second[index(Precision::fp8)] = {.value = 2e15};
  gpu.peak_flops_per_second[index(Precision::fp32)] = {.value = 5e13};
  gpu.sm_count = {.value = 132};
  gpu.pcie_generation.value = 5;
  gpu.pcie_lanes.value = 16;
  gpu.copy_latency.value = microseconds(5);
  gpu.launch_call.value = microseconds(3);
  gpu.launch_to_start.value = microseconds(4);
  gpu.kernel_gap.value = microseconds(1);
  gpu.roofline.compute_efficiency.value = 0.8;
  gpu.roofline.memory_efficiency.value = 0.75;
  gpu.roofline.latency.value = microseconds(2);
  profile.host.dispatch_cost.value = microseconds(6);
  profile.host.pcie_payload_efficiency.value = 0.85;
  return profile;
}

}  // namespace spillway::models
