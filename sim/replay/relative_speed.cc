#include "sim/replay/relative_speed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace spillway::sim {
namespace {

constexpr std::array<std::string_view, work_class_count> work_class_names = {"compute", "memory", "pcie",
                                                                             "network", "host",   "storage"};
// Fragments, lower case, of kernels whose time follows arithmetic throughput.
constexpr std::array<std::string_view, 16> compute_fragments = {
    "gemm",      "conv",     "cutlass", "xmma",  "winograd", "cijk_", "flash", "fmha",
    "attention", "implicit", "wgrad",   "dgrad", "matmul",   "_mm_",  "nvjet", "sdpa"};

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

constexpr std::size_t byte(char c) { return static_cast<unsigned char>(c); }

// By character, the fragments (bits) that have it first, second, third, in either case. A capture asks for every kernel
// by its name: most characters begin nothing, and that takes three loads.
constexpr std::size_t lead = 3;
constexpr auto leads = [] {
  std::array<std::array<std::uint16_t, 256>, lead> of{};
  for (std::size_t f = 0; f < compute_fragments.size(); ++f)
    for (std::size_t place = 0; place < lead; ++place)
      for (int c = 0; c < 256; ++c)
        if (lower(static_cast<char>(c)) == compute_fragments[f][place])
          of[place][static_cast<std::size_t>(c)] |= static_cast<std::uint16_t>(1U << f);
  return of;
}();
static_assert(compute_fragments.size() <= 16);

bool begins_with(std::string_view text, std::string_view fragment) {
  return text.size() >= fragment.size() &&
         std::equal(fragment.begin(), fragment.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

}  // namespace

std::string_view to_string(WorkClass work) { return work_class_names[static_cast<std::size_t>(work)]; }

bool is_compute_kernel_name(std::string_view name) {
  for (std::size_t at = 0; at + lead <= name.size(); ++at) {
    unsigned fragments = leads[0][byte(name[at])] & leads[1][byte(name[at + 1])] & leads[2][byte(name[at + 2])];
    for (; fragments != 0; fragments &= fragments - 1)
      if (begins_with(name.substr(at), compute_fragments[static_cast<std::size_t>(std::countr_zero(fragments))]))
        return true;
  }
  return false;
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
