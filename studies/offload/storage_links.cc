#include "studies/offload/storage_links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "base/input_error.h"
#include "sim/engine/executor.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t probe_bytes = 256'000'000;  // small beside any write cache

struct Direction {
  Rate rate{};                // of the slowest GPU
  std::vector<double> share;  // by link
};

Direction move_all(const HardwareProfile& hardware, const std::vector<GpuShare>& gpus, DriveRoute route, bool write) {
  ActivityGraph graph;
  const Machine machine(hardware, graph);
  std::vector<ActivityId> flows;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const std::size_t set = gpu % machine.drive_sets().size();
    const std::int64_t bytes = std::llround((write ? gpus[gpu].write : gpus[gpu].read) * probe_bytes);
    if (bytes > 0)
      flows.push_back(graph.add_flow(
          no_lane, bytes, write ? machine.gpu_to_drive(gpu, set, route) : machine.drive_to_gpu(gpu, set, route)));
  }
  graph.finish();
  Executor<> executor(std::move(graph));
  const Outcome outcome = executor.run();
  SPILLWAY_ASSERT(outcome.ok());
  Picos last{};
  for (const ActivityId flow : flows) last = std::max(last, executor.end(flow));
  Direction direction;
  if (last > Picos(0)) direction.rate = rate_from_bytes_per_second(static_cast<double>(probe_bytes) / to_seconds(last));
  for (const Machine::NamedLink& link : machine.links())
    direction.share.push_back(static_cast<double>(executor.link_totals(link.link).units) /
                              static_cast<double>(probe_bytes));
  return direction;
}

constexpr std::string_view added_switch = "added switch";
const Origin added_origin{OriginKind::assumed, "slot added below its own switch", ""};

// Slots that a scenario's own drives made, or an earlier call.
bool is_added(const PcieNode& node) {
  const auto says = [](const Maybe<std::int64_t>& leaf) {
    return leaf && leaf->origin.provenance == OriginKind::assumed && leaf->origin.source.starts_with("slot added");
  };
  return node.kind != PcieNodeKind::gpu_slot && (says(node.generation) || says(node.lanes));
}

// Slots for `needed` drives. Nodes are appended, so that parents stay before what hangs from them.
void add_slots(HostProfile& host, const NvmeProfile& drive, std::int64_t needed, std::int64_t switch_lanes) {
  while (!host.pcie.empty() && is_added(host.pcie.back())) host.pcie.pop_back();
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < host.pcie.size(); ++i)
    if (host.pcie[i].kind == PcieNodeKind::drive_slot) slots.push_back(i);
  const auto wanted = static_cast<std::size_t>(needed);
  if (slots.empty() || wanted <= slots.size()) return;    // without any, assign_slots() says so
  std::map<std::size_t, std::vector<std::size_t>> below;  // where: slots to copy
  for (std::size_t i = slots.size(); i < wanted; ++i) {
    const std::size_t like = slots[i % slots.size()];
    below[host.pcie[like].up.value_or(0)].push_back(like);
  }
  const std::int64_t lanes = std::max<std::int64_t>(1, drive.pcie_lanes.value);
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(1, (switch_lanes - switch_lanes_up) / lanes));
  std::vector<PcieNode> more;
  std::size_t named = slots.size();
  for (const auto& [up, copies] : below) {
    const std::size_t first = host.pcie.size(), switches = (copies.size() + each - 1) / each;
    for (std::size_t s = 0; s < switches; ++s) {
      PcieNode node;
      node.name = std::string(added_switch) + std::to_string(first + s);
      node.kind = PcieNodeKind::pcie_switch;
      node.up = up;
      const Maybe<std::int64_t>& generation =
          host.pcie[up].generation ? host.pcie[up].generation : host.pcie[copies.front()].generation;
      node.generation =
          Sourced<std::int64_t>{generation ? generation->value : drive.pcie_generation.value, added_origin};
      node.lanes = Sourced<std::int64_t>{switch_lanes_up, added_origin};
      host.pcie.push_back(std::move(node));
    }
    for (std::size_t i = 0; i < copies.size(); ++i) {
      PcieNode slot = host.pcie[copies[i]];
      slot.name = "added drive_slot" + std::to_string(named++);
      slot.up = first + i % switches;
      if (slot.generation) slot.generation->origin = added_origin;
      slot.lanes = Sourced<std::int64_t>{slot.lanes ? slot.lanes->value : lanes, added_origin};
      more.push_back(std::move(slot));
    }
  }
  host.pcie.insert(host.pcie.end(), more.begin(), more.end());
}

}  // namespace

std::int64_t added_switches(const HardwareProfile& hardware) {
  return std::count_if(hardware.host.pcie.begin(), hardware.host.pcie.end(),
                       [](const PcieNode& node) { return node.name.starts_with(added_switch); });
}

HardwareProfile with_drives(const HardwareProfile& hardware, const NvmeProfile& drive, std::int64_t count,
                            std::int64_t sets, std::int64_t switch_lanes) {
  HardwareProfile changed = hardware;
  changed.drives.clear();
  for (std::int64_t set = 0; set < sets; ++set) {
    DriveGroup group;
    group.name = "set" + std::to_string(set);
    group.drive = drive;
    group.count = count;
    changed.drives.push_back(std::move(group));
  }
  add_slots(changed.host, drive, count * sets, switch_lanes);
  assign_slots(changed, true);
  return changed;
}

StorageLinks storage_links(const HardwareProfile& hardware, std::int64_t gpus, DriveRoute route) {
  return storage_links(hardware, std::vector<GpuShare>(static_cast<std::size_t>(gpus)), route);
}

StorageLinks storage_links(const HardwareProfile& hardware, const std::vector<GpuShare>& gpus, DriveRoute route) {
  SPILLWAY_ASSERT(!gpus.empty() && gpus.size() <= static_cast<std::size_t>(hardware.gpu_count));
  if (hardware.drives.empty())
    throw InputError("", "report", "the machine '" + hardware.name + "' has no drives",
                     "name some with --drives, or a profile that has them");
  const Direction write = move_all(hardware, gpus, route, true), read = move_all(hardware, gpus, route, false);
  ActivityGraph graph;
  const Machine machine(hardware, graph);
  StorageLinks found{write.rate, read.rate, {}};
  // What a drive's reads and writes share counts a write as the reads it displaces; here they come one after the other.
  const auto is_media = [&](LinkId link) {
    const auto& sets = machine.drive_sets();
    return std::any_of(sets.begin(), sets.end(), [&](const auto& set) { return set.media == link; });
  };
  for (std::size_t i = 0; i < machine.links().size(); ++i)
    if ((write.share[i] > 0 || read.share[i] > 0) && !is_media(machine.links()[i].link))
      found.links.push_back({machine.links()[i].name, machine.links()[i].capacity, write.share[i], read.share[i]});
  return found;
}

}  // namespace spillway::studies
