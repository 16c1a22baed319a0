#include "sim/replay/transfer_links.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/base/input_error.h"

namespace spillway {
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
      gpus_alike_(std::clamp<std::int64_t>(gpus_alike, 1, hardware.gpu_count)) {
  const bool has_tree = !hardware.host.pcie.empty() && !hardware.gpu_slots.empty();
  if (planned != nullptr && !planned->lanes.empty() && !has_tree)
    throw InputError(hardware_name_, "host", "the profile describes no PCIe tree for offloads to go over",
                     "take a system profile with a host, such as h100-80gb-1gpu");
  if (!has_tree) return;
  if (trace.rank_count <= 1) {
    add_machine(trace, hardware, 0, 0, planned, cache_levels, graph);
    const Machine& machine = machines_.front().machine;
    for (std::size_t gpu = 0; gpu < machine.gpu_count(); ++gpu) {
      copies_.host_to_device.push_back(machine.host_to_device(gpu));
      copies_.device_to_host.push_back(machine.device_to_host(gpu));
    }
  }
  if (planned == nullptr) return;
  for (const TransferLane& lane : planned->lanes) {
    if (std::find(machine_rank_.begin(), machine_rank_.end(), lane.rank) == machine_rank_.end())
      add_machine(trace, hardware, lane.rank, lane.device, planned, cache_levels, graph);
    add_lane(lane, *planned, graph);
  }
}

void TransferLinks::add_machine(const Trace& trace, const HardwareProfile& hardware, std::uint16_t rank,
                                std::int16_t device, const PlannedTrace* planned,
                                const std::vector<std::int64_t>& cache_levels, ActivityGraph& graph) {
  std::vector<std::int64_t> levels(hardware.drives.size() * 16, 0);
  if (machines_.size() < cache_levels.size()) std::fill(levels.begin(), levels.end(), cache_levels[machines_.size()]);
  RankMachine added{trace.rank_count > 1 ? "rank " + std::to_string(rank) + " " : "", Machine(hardware, graph, levels),
                    std::nullopt};
  const bool uses_drives =
      planned != nullptr && std::any_of(planned->lanes.begin(), planned->lanes.end(),
                                        [](const TransferLane& l) { return l.tier == Tier::drive; });
  const auto gpu = trace.rank_count > 1 ? std::size_t{0} : static_cast<std::size_t>(std::max<int>(0, device));
  if (uses_drives) added.drive_set = drive_set(added.machine, gpu, planned->drives);
  machines_.push_back(std::move(added));
  machine_rank_.push_back(rank);
}

std::size_t TransferLinks::drive_set(const Machine& machine, std::size_t gpu, const std::string& wanted) const {
  const auto& sets = machine.drive_sets();
  if (sets.empty())
    throw InputError(hardware_name_, "drives", "the system has no drives to offload to",
                     "take a system profile with drives, or name some: \"offload\": {\"drives\": "
                     "\"samsung-990-pro-2tb\", \"drive_count\": 4}");
  if (wanted.empty()) return gpu % sets.size();
  for (std::size_t s = 0; s < sets.size(); ++s)
    if (sets[s].name == wanted) return s;
  std::string names;
  for (const auto& set : sets) names += (names.empty() ? "" : ", ") + set.name;
  throw InputError(hardware_name_, "drives", "there is no drive set named '" + wanted + "'", "take one of " + names);
}

void TransferLinks::add_lane(const TransferLane& lane, const PlannedTrace& planned, ActivityGraph& graph) {
  const auto at = std::find(machine_rank_.begin(), machine_rank_.end(), lane.rank) - machine_rank_.begin();
  const RankMachine& own = machines_[static_cast<std::size_t>(at)];
  const Machine& machine = own.machine;
  const std::size_t first = machines_.size() > 1 ? 0 : static_cast<std::size_t>(std::max<int>(0, lane.device));
  std::vector<PathId> paths;
  for (std::size_t g = 0; g < static_cast<std::size_t>(gpus_alike_); ++g) {
    const std::size_t gpu = (first + g) % machine.gpu_count();
    if (lane.tier == Tier::host) {
      paths.push_back(lane.inbound ? machine.host_to_device(gpu) : machine.device_to_host(gpu));
    } else {
      const PathOf path = lane.inbound ? &Machine::drive_to_gpu : &Machine::gpu_to_drive;
      paths.push_back((machine.*path)(gpu, drive_set(machine, gpu, planned.drives), planned.route));
    }
  }
  LaneTransfer transfer{lane.lane, joined(paths, graph), lane.width, Picos{}};
  if (lane.tier == Tier::drive) {
    const NvmeModel& drive = machine.drive_sets()[*own.drive_set].drive;
    transfer.latency = lane.inbound ? drive.read_latency : drive.write_latency;
  }
  lanes_.push_back(transfer);
}

void TransferLinks::record(const ExecutorState& run, Picos replayed, Result& result) const {
  const double seconds = to_seconds(replayed);
  for (std::size_t m = 0; m < machines_.size(); ++m) {
    const RankMachine& own = machines_[m];
    for (const Machine::NamedLink& named : own.machine.links()) {
      const FluidNetwork::LinkTotals totals = run.link_totals(named.link);
      if (totals.units == 0) continue;
      const double possible = to_bytes_per_second(named.capacity) * seconds;
      result.links.push_back({own.prefix + named.name, Bytes(totals.units), named.capacity,
                              possible > 0 ? static_cast<double>(totals.units) / possible : 0});
    }
    if (!own.drive_set) continue;
    const Machine::DriveSet& set = own.machine.drive_sets()[*own.drive_set];
    DriveTraffic traffic;
    traffic.name = own.prefix + set.name;
    traffic.set = set.name;
    traffic.drives = set.drives;
    traffic.written = Bytes(run.link_totals(set.write).units);
    traffic.read = Bytes(run.link_totals(set.read).units);
    if (machines_.size() > 1) {
      traffic.sharing = gpus_alike_;
      traffic.written = traffic.written / gpus_alike_;
      traffic.read = traffic.read / gpus_alike_;
    }
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

}  // namespace spillway
