#include "sim/replay/transfer_links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

// A path that takes as much of each link as all of `paths` together, over the links of the first.
PathId joined(const std::vector<PathId>& paths, ActivityGraph& graph) {
  const auto of_first = graph.network().path(paths.front());
  std::vector<PathEntry> entries(of_first.begin(), of_first.end());
  for (std::size_t p = 1; p < paths.size(); ++p)
    for (const PathEntry& other : graph.network().path(paths[p]))
      for (PathEntry& entry : entries)
        if (entry.link == other.link) entry.usage = std::min(max_usage, entry.usage + other.usage);
  return graph.add_path(entries);
}

}  // namespace

TransferLinks::TransferLinks(const Trace& trace, const HardwareProfile& hardware, const PlannedTrace* planned,
                             std::int64_t gpus_alike, const std::vector<std::int64_t>& cache_levels,
                             ActivityGraph& graph)
    : hardware_name_(hardware.path.empty() ? hardware.name : hardware.path),
      wanted_set_(planned != nullptr ? planned->drives : ""),
      set_names_(drive_set_names(hardware)),
      gpus_alike_(std::clamp<std::int64_t>(gpus_alike, 1, hardware.gpu_count)),
      transfer_lanes_(transfer_lanes(trace)) {
  if (planned != nullptr) transfer_lanes_.insert(transfer_lanes_.end(), planned->lanes.begin(), planned->lanes.end());
  const bool has_tree = !hardware.host.pcie.empty() && !hardware.gpu_slots.empty();
  if (!transfer_lanes_.empty() && !has_tree)
    throw InputError(hardware_name_, "host", "the profile describes no PCIe tree for offloads to go over",
                     "take a system profile with a host, such as h100-80gb-1gpu");
  if (!has_tree) return;
  if (trace.rank_count <= 1) {
    add_machine(trace, hardware, 0, 0, cache_levels, graph);
    const Machine& machine = machines_.front().machine;
    for (std::size_t gpu = 0; gpu < machine.gpu_count(); ++gpu) {
      copies_.host_to_device.push_back(machine.host_to_device(gpu));
      copies_.device_to_host.push_back(machine.device_to_host(gpu));
    }
  }
  for (const TransferLane& lane : transfer_lanes_) {
    if (std::find(machine_rank_.begin(), machine_rank_.end(), lane.rank) == machine_rank_.end())
      add_machine(trace, hardware, lane.rank, lane.device, cache_levels, graph);
    add_lane(lane, graph);
  }
}

void TransferLinks::add_machine(const Trace& trace, const HardwareProfile& hardware, std::uint16_t rank,
                                std::int16_t device, const std::vector<std::int64_t>& cache_levels,
                                ActivityGraph& graph) {
  std::vector<std::int64_t> levels(set_names_.size(), 0);
  std::optional<std::size_t> own;
  const std::size_t first = trace.rank_count > 1 ? 0 : static_cast<std::size_t>(std::max<int>(0, device));
  const bool uses_drives = std::any_of(transfer_lanes_.begin(), transfer_lanes_.end(),
                                       [](const TransferLane& l) { return l.tier == Tier::drive; });
  if (uses_drives) {
    own = drive_set(first);
    if (machines_.size() < cache_levels.size()) levels[*own] = cache_levels[machines_.size()];
  }
  const std::string prefix = trace.rank_count > 1 ? "rank " + std::to_string(rank) + " " : "";
  machines_.push_back({prefix, Machine(hardware, graph, levels), own, 0});
  for (std::size_t g = 0; own && g < static_cast<std::size_t>(gpus_alike_); ++g)
    if (drive_set((first + g) % machines_.back().machine.gpu_count()) == *own) ++machines_.back().set_gpus;
  machine_rank_.push_back(rank);
  if (!hardware.gpu.shared_hbm_fraction) return;
  const Machine& machine = machines_.back().machine;
  for (std::size_t gpu = 0; gpu < (trace.rank_count > 1 ? 1 : machine.gpu_count()); ++gpu)
    shared_memory_.push_back({rank, static_cast<std::int16_t>(trace.rank_count > 1 ? -1 : static_cast<int>(gpu)),
                              machine.hbm(gpu), graph.network().capacity(machine.hbm(gpu))});
}

std::size_t TransferLinks::drive_set(std::size_t gpu) const {
  if (set_names_.empty())
    throw InputError(hardware_name_, "drives", "the system has no drives to offload to",
                     "take a system profile with drives, or name some: \"offload\": {\"drives\": "
                     "\"samsung-990-pro-2tb\", \"drives_per_machine\": 4}");
  if (wanted_set_.empty()) return gpu % set_names_.size();
  const auto found = std::find(set_names_.begin(), set_names_.end(), wanted_set_);
  if (found != set_names_.end()) return static_cast<std::size_t>(found - set_names_.begin());
  std::string names;
  for (const std::string& name : set_names_) names += (names.empty() ? "" : ", ") + name;
  throw InputError(hardware_name_, "drives", "there is no drive set named '" + wanted_set_ + "'",
                   "take one of " + names);
}

// Pairs from both ends of the machine, an odd one in the middle with its neighbour.
PathId TransferLinks::peer_path(const TransferLane& lane, const Machine& machine, std::size_t gpu) const {
  const std::size_t count = machine.gpu_count();
  if (count < 2)
    throw InputError(hardware_name_, "gpu_count", "the system has one GPU, and activations go to another one",
                     "take a system of several GPUs");
  const std::size_t other = gpu * 2 + 1 == count ? gpu + 1 : count - 1 - gpu;
  return lane.inbound ? machine.peer(other, gpu) : machine.peer(gpu, other);
}

PathId TransferLinks::path_of(const TransferLane& lane, const Machine& machine, std::size_t gpu) const {
  if (lane.to_peer) return peer_path(lane, machine, gpu);
  if (lane.tier == Tier::host) return lane.inbound ? machine.host_to_device(gpu) : machine.device_to_host(gpu);
  const std::size_t set = drive_set(gpu);
  if (!lane.at_device) return lane.inbound ? machine.drive_to_host(gpu, set) : machine.host_to_drive(gpu, set);
  return lane.inbound ? machine.drive_to_gpu(gpu, set, lane.route) : machine.gpu_to_drive(gpu, set, lane.route);
}

void TransferLinks::add_lane(const TransferLane& lane, ActivityGraph& graph) {
  const auto at = std::find(machine_rank_.begin(), machine_rank_.end(), lane.rank) - machine_rank_.begin();
  const RankMachine& own = machines_[static_cast<std::size_t>(at)];
  const Machine& machine = own.machine;
  const std::size_t first = machines_.size() > 1 ? 0 : static_cast<std::size_t>(std::max<int>(0, lane.device));
  std::vector<PathId> paths;
  for (std::size_t g = 0; g < static_cast<std::size_t>(gpus_alike_); ++g)
    paths.push_back(path_of(lane, machine, (first + g) % machine.gpu_count()));
  LaneTransfer transfer{lane.lane, joined(paths, graph), lane.width, Picos{}};
  if (lane.tier == Tier::drive) {
    const NvmeModel& drive = machine.drive_sets()[*own.drive_set].drive;
    transfer.latency = lane.inbound ? drive.read_latency : drive.write_latency;
  }
  lanes_.push_back(transfer);
}

void TransferLinks::record(const ExecutorState& run, Picos replayed, std::span<const std::int64_t> units,
                           Result& result) const {
  const double seconds = to_seconds(replayed);
  for (std::size_t m = 0; m < machines_.size(); ++m) {
    const RankMachine& own = machines_[m];
    for (const Machine::NamedLink& named : own.machine.links()) {
      const std::int64_t carried = units.empty() ? run.link_totals(named.link).units : units[index(named.link)];
      if (carried == 0) continue;
      const double possible = to_bytes_per_second(named.capacity) * seconds;
      result.links.push_back({own.prefix + named.name, Bytes(carried), named.capacity,
                              possible > 0 ? static_cast<double>(carried) / possible : 0});
    }
    if (!own.drive_set) continue;
    const Machine::DriveSet& set = own.machine.drive_sets()[*own.drive_set];
    DriveTraffic traffic;
    traffic.name = own.prefix + set.name;
    traffic.set = set.name;
    traffic.drives = set.drives;
    traffic.written = Bytes(run.link_totals(set.write).units);
    traffic.read = Bytes(run.link_totals(set.read).units);
    traffic.gpus = own.set_gpus;
    traffic.cache_was_full = set.cache && run.reservoir(*set.cache).bypassed() > 0;
    result.drives.push_back(traffic);
  }
}

std::vector<std::int64_t> TransferLinks::cache_levels(const ExecutorState& run) const {
  std::vector<std::int64_t> levels;
  for (const RankMachine& own : machines_) {
    const auto cache = own.drive_set ? own.machine.drive_sets()[*own.drive_set].cache : std::nullopt;
    levels.push_back(cache ? run.reservoir(*cache).level() : 0);
  }
  return levels;
}

std::vector<std::int64_t> TransferLinks::cache_sizes() const {
  std::vector<std::int64_t> sizes;
  for (const RankMachine& own : machines_) {
    const auto cache = own.drive_set ? own.machine.drive_sets()[*own.drive_set].cache : std::nullopt;
    sizes.push_back(cache ? (own.machine.drive_sets()[*own.drive_set].drive.cache->size *
                             own.machine.drive_sets()[*own.drive_set].drives)
                                .count()
                          : 0);
  }
  return sizes;
}

}  // namespace spillway::sim
