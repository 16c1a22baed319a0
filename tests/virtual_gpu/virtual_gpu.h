// A GPU that is not there: what our code calls of the CUDA runtime, driver, cuBLASLt, cuDNN, CUPTI and NVML, over a
// machine of known constants on a clock of its own. Linked under the measuring code as it is, so that tests know what
// it should find. One device a process.
//
// Host calls cost the clock their time; kernels, copies and events run in their streams' order, at rates that depend on
// what runs beside them, and are simulated as far as the host's clock has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace spillway::virtual_gpu {

struct Constants {
  std::string name = "NVIDIA H100 80GB HBM3";
  std::int64_t memory_bytes = 85'017'755'648, context_bytes = 557'842'432;
  int multiprocessors = 132, major = 9, minor = 0;
  std::int64_t l2_bytes = 52'428'800;

  // Seconds.
  double launch_call = 2.1e-6, launch_to_start = 3.3e-6, kernel_gap = 0.9e-6, empty_kernel = 1.2e-6;
  double event_record_call = 0.7e-6, event_wait_call = 0.5e-6, event_gap = 1.9e-6;
  double malloc_call = 110e-6, free_call = 140e-6, chunk_create = 190e-6, chunk_map = 24e-6, chunk_unmap = 55e-6;
  double other_call = 0.2e-6, tracing_per_launch = 1.5e-6;
  double write_over_link = 0.8e-6;  // until the host sees it
  int launch_queue = 1022;

  // Bytes a second; a copy of n bytes takes copy_latency + n / rate.
  double to_device_rate = 55e9, to_host_rate = 52e9, duplex_rate = 90e9, copy_latency = 1.3e-6;
  double pageable_fraction = 0.21;
  // Bound by memory: memory_fixed + bytes / memory_rate, less what copies take.
  double memory_rate = 3.0e12, memory_fixed = 1.7e-6;
  double hbm_contention = 2.4;         // bytes that a kernel does without per byte that a copy moves beside it
  double copies_beside_kernels = 0.9;  // of their rate alone
  double two_stream_speedup = 1.7;

  // Products: product_fixed + 2mnk / rate + operand bytes / memory_rate, the first two by the clock.
  double product_fixed = 2.6e-6, bf16_rate = 780e12, fp8_rate = 1450e12, fp32_rate = 48e12;
  std::int64_t split_from = 8;  // k of so many times m and n runs as two kernels

  // cuDNN: fixed + flops / rate, of which backwards is five products; norms: fixed + bytes / memory_rate.
  int cudnn_version = 91900;
  double plan_build = 0.05;  // of the host
  double attention_fixed = 5e-6, attention_forward_rate = 480e12, attention_backward_rate = 390e12, norm_fixed = 3e-6;
  std::string cudnn_refuses;  // "causal attention_backward": graphs whose words hold this; empty: none

  double highest_clock_mhz = 1980, settled_clock = 0.72;  // share, under products for long
  double settling_seconds = 0.2, idle_watts = 110, limit_watts = 700;

  bool allows_tracing = true;
  bool computes = false;  // device memory is there, and products and copies are carried out
};

// A fresh device; the clock begins anew and counts are 0.
void power_on(const Constants& constants);
// Its clock, without moving it.
double now();

// Calls so far by name ("cudaMalloc"), launches as "launch".
std::map<std::string, std::uint64_t> calls();
// cuDNN's descriptors and handles that are not given back.
std::size_t cudnn_alive();
// From now on the call of that name with this number (from 1) fails; lost: and every call after it.
void fail_call(const std::string& name, std::uint64_t number, bool lost);

}  // namespace spillway::virtual_gpu
