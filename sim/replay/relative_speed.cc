#include "sim/replay/relative_speed.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

namespace spillway::sim {
namespace {

constexpr std::array<std::string_view, work_class_count> work_class_names = {"compute", "memory", "pcie",
                                                                             "network", "host",   "storage"};
// Fragments, lower case, of kernels whose time follows arithmetic throughput.
constexpr std::array<std::string_view, 16> compute_fragments = {
    "gemm",      "conv",     "cutlass", "xmma",  "winograd", "cijk_", "flash", "fmha",
    "attention", "implicit", "wgrad",   "dgrad", "matmul",   "_mm_",  "nvjet", "sdpa"};

}  // namespace

std::string_view to_string(WorkClass work) { return work_class_names[static_cast<std::size_t>(work)]; }

bool is_compute_kernel_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(compute_fragments.begin(), compute_fragments.end(),
                     [&](std::string_view fragment) { return lower.find(fragment) != std::string::npos; });
}

WorkClass classify(const Trace& trace, OpId op, double machine_balance) {
  const std::size_t i = index_of(op);
  const OpKind kind = trace.ops.kind[i];
  if (is_host_call(kind)) return WorkClass::host;
  if (kind == OpKind::collective) return WorkClass::network;
  if (kind == OpKind::storage_read || kind == OpKind::storage_write) return WorkClass::storage;
  if (kind == OpKind::copy_host_to_device || kind == OpKind::copy_device_to_host) return WorkClass::pcie;
  if (kind == OpKind::copy_peer) return WorkClass::network;
  if (kind != OpKind::kernel) return WorkClass::memory;
  const double flops = static_cast<double>(trace.ops.flops[i].count());
  const double bytes = static_cast<double>(trace.ops.bytes[i].count());
  if (machine_balance > 0 && (flops > 0 || bytes > 0))
    return flops > bytes * machine_balance ? WorkClass::compute : WorkClass::memory;
  return is_compute_kernel_name(trace.strings.text(trace.ops.name[i])) ? WorkClass::compute : WorkClass::memory;
}

Picos scaled(Picos duration, double speed) {
  if (speed == 1) return duration;
  return Picos(std::llround(static_cast<double>(duration.count()) / speed));
}

}  // namespace spillway::sim
