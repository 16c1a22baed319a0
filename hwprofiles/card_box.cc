#include "hwprofiles/card_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// Shares of the link and of the host's memory that copies through that memory reach (card_box.h).
constexpr double staged_link_share = 0.55, staged_memory_share = 0.73;
// Of the link, one way: 53 to 56 of 63 GB/s at one socket, 39 to 51 across two (RTX PRO 6000 Blackwell and RTX 5090 on
// PCIe 5: voipmonitor/rtx6kpro hardware/pcie-bandwidth.md); 19.6 to 25.2 of 31.5 (eight A40: NVIDIA/nccl-tests issue
// 74).
constexpr double peer_share = 0.84, peer_share_across_sockets = 0.62;
constexpr Picos peer_latency = microseconds(6);

struct Shape {
  std::int64_t sockets, cores, gib, channels, drive_slots;
  double watts;
};
Shape shape_of(std::int64_t cards) {
  if (cards <= 2) return {1, 16, 64, 2, 2, 150};
  if (cards <= 4) return {1, 32, 256, 8, 4, 300};
  return {2, 64, 512, 16, 8, 600};
}

// Bytes a second of a memory channel: DDR4-2666, DDR4-3200, DDR5-4800; of desktops with DDR5 its 5,600.
double channel_rate(std::int64_t generation, bool is_desktop) {
  if (generation <= 3) return 2666e6 * 8;
  if (is_desktop) return 5600e6 * 8;
  return (generation == 4 ? 3200e6 : 4800e6) * 8;
}

template <class T>
Sourced<T> by_rule(T value, std::string why) {
  return {value, {OriginKind::assumed, std::move(why), ""}};
}

PcieNode slot(std::string name, PcieNodeKind kind, std::size_t up, std::int64_t generation, std::int64_t lanes) {
  const std::string why = "box of cards by rule";
  return {.name = std::move(name),
          .kind = kind,
          .up = up,
          .generation = by_rule(generation, why),
          .lanes = by_rule(lanes, why)};
}

// The generic host of the card's PCIe generation, of another size.
HostProfile host_of(const ProfileLibrary& library, const GpuProfile& gpu, std::int64_t cards) {
  const std::int64_t generation = std::clamp<std::int64_t>(gpu.pcie_generation.value, 3, 6);
  HostProfile host = library.load_host(fmt::format("generic-pcie{}-host", generation));
  const Shape shape = shape_of(cards);
  const std::string why = fmt::format("by rule for {} card{}; nobody said", cards, cards == 1 ? "" : "s");
  const double bandwidth = static_cast<double>(shape.channels) * channel_rate(generation, shape.channels == 2);
  host.name = fmt::format("{}-cards-pcie{}-host", cards, generation);
  host.title = fmt::format("{}-socket host, PCIe {}, {} channels of memory", shape.sockets, generation, shape.channels);
  host.cpu_model.clear();
  host.note.clear();
  host.sockets = by_rule(shape.sockets, why);
  host.cores = by_rule(shape.cores, why);
  host.dram = by_rule(Bytes(shape.gib << 30), why);
  host.dram_bandwidth = by_rule(rate_from_bytes_per_second(bandwidth), why + ": channels x transfer rate x 8 B");
  // A byte of parameter, master, moments and gradient is read and written: 28 a parameter at 60 % of the memory.
  host.cpu_adam_parameters_per_second = by_rule(0.6 * bandwidth / 28, why + ": 60 % of DRAM bandwidth over 28 bytes");
  host.power_watts = by_rule(shape.watts, why);
  host.socket_bandwidth.reset();
  if (shape.sockets > 1) host.socket_bandwidth = by_rule(rate_from_bytes_per_second(100e9), why + ": as a DGX A100's");
  host.pcie.clear();
  for (std::int64_t i = 0; i < shape.sockets; ++i)
    host.pcie.push_back({.name = fmt::format("cpu{}", i), .kind = PcieNodeKind::root_complex});
  const std::int64_t lanes = cards == 2 ? 8 : 16;
  const auto at_socket = [&](std::int64_t i, std::int64_t all) {
    return static_cast<std::size_t>(i * shape.sockets / all);
  };
  for (std::int64_t i = 0; i < cards; ++i)
    host.pcie.push_back(slot(fmt::format("gpu{}", i), PcieNodeKind::gpu_slot, at_socket(i, cards), generation, lanes));
  for (std::int64_t i = 0; i < shape.drive_slots; ++i)
    host.pcie.push_back(
        slot(fmt::format("drive{}", i), PcieNodeKind::drive_slot, at_socket(i, shape.drive_slots), generation, 4));
  host.pcie.push_back(slot("nic0", PcieNodeKind::nic_slot, 0, generation, 8));
  return host;
}

}  // namespace

bool is_card(const GpuProfile& gpu) { return gpu.form_factor == "PCIe"; }

HardwareProfile box_of_cards(const ProfileLibrary& library, const GpuProfile& gpu, std::int64_t cards) {
  SPILLWAY_ASSERT(is_card(gpu) && cards >= 1);
  HardwareProfile machine;
  machine.gpu = gpu;
  machine.gpu_count = cards;
  machine.name = fmt::format("{}x{}", cards, gpu.name);
  machine.title = fmt::format("{}x {}", cards, gpu.title);
  machine.host = host_of(library, gpu, cards);
  assign_slots(machine, false);
  if (cards > 1) machine.scale_up = card_links(machine, !gpu.peer_access || gpu.peer_access->value != 0);
  return machine;
}

NetworkProfile card_links(const HardwareProfile& machine, bool peer_access) {
  const PcieNode& first = machine.host.pcie[machine.gpu_slots.front()];
  const std::int64_t generation = std::min(first.generation->value, machine.gpu.pcie_generation.value);
  const std::int64_t lanes = std::min(first.lanes->value, machine.gpu.pcie_lanes.value);
  const Rate link = pcie_raw_rate(generation, lanes);
  const bool has_sockets = machine.host.sockets.value > 1;
  double share = has_sockets ? peer_share_across_sockets : peer_share;
  std::string why = "share of the link that cards reach which read each other's memory (card_box.h)";
  if (!peer_access) {
    const double memory = staged_memory_share * to_bytes_per_second(machine.host.dram_bandwidth.value) /
                          (2 * static_cast<double>(machine.gpu_count));
    share = std::min(staged_link_share, memory / to_bytes_per_second(link));
    why = fmt::format(
        "copies through the host's memory, which {} cards share: as eight RTX 5090 measured (NVIDIA/nccl issue 1639); "
        "0.32 of the link on an older box (NVIDIA/nccl-tests issue 74)",
        machine.gpu_count);
  }
  NetworkProfile links;
  links.name = fmt::format("pcie{}-{}", generation, peer_access ? "peers" : "host");
  links.technology = fmt::format("PCIe {}", generation);
  links.title = fmt::format("PCIe {} x{}, {}", generation, lanes,
                            peer_access ? "peer to peer" : "through the host's memory (no peer to peer)");
  links.topology = NetworkTopology::ring;
  links.bandwidth = {link, {OriginKind::datasheet, links.technology + " line rate", ""}};
  links.efficiency = by_rule(share, why);
  links.latency = by_rule(peer_access ? peer_latency : peer_latency * 2,
                          "one hop of a collective, launch excluded; "
                          "through the host's memory two copies");
  links.max_group = by_rule(machine.gpu_count, "cards of the box");
  return links;
}

}  // namespace spillway::hwprofiles
