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
                             std::int64_t gpus, const std::vector<std::int64_t>& cache_levels, ActivityGraph& graph)
    : hardware_name_(hardware.path.empty() ? hardware.name : hardware.path),
      places_(trace.rank_count, gpus, hardware.gpu_count),
      transfer_lanes_(transfer_lanes(trace)) {
  if (planned != nullptr) transfer_lanes_.insert(transfer_lanes_.end(), planned->lanes.begin(), planned->lanes.end());
  const bool has_tree = !hardware.host.pcie.empty() && !hardware.gpu_slots.empty();
  if (!transfer_lanes_.empty() && !has_tree)
    throw InputError(hardware_name_, "host", "the profile describes no PCIe tree for offloads to go over",
                     "take a machine with a host, such as h100-80gb-1gpu");
  if (!has_tree) return;
  uses_drives_ = std::any_of(transfer_lanes_.begin(), transfer_lanes_.end(),
                             [](const TransferLane& lane) { return lane.tier == Tier::drive; });
  if (uses_drives_) set_of_gpu_ = drive_sets_of_gpus(hardware, planned != nullptr ? planned->drives : "");
  if (places_.ranks() == 1) place(0);
  for (const TransferLane& lane : transfer_lanes_) place(lane.rank);
  add_machines(hardware, cache_levels, graph);
  for (std::size_t gpu = 0; places_.ranks() == 1 && gpu < machines_.front().gpu_count(); ++gpu) {
    copies_.host_to_device.push_back(machines_.front().host_to_device(gpu));
    copies_.device_to_host.push_back(machines_.front().device_to_host(gpu));
  }
  for (const TransferLane& lane : transfer_lanes_) add_lane(lane, graph);
  if (uses_drives_) add_traffic(trace);
}

const TransferLinks::RankPlace* TransferLinks::place_of(std::uint16_t rank) const {
  const auto found =
      std::find_if(ranks_.begin(), ranks_.end(), [&](const RankPlace& one) { return one.share.rank == rank; });
  return found == ranks_.end() ? nullptr : &*found;
}

void TransferLinks::place(std::uint16_t rank) {
  if (place_of(rank) != nullptr) return;
  const std::int64_t home = places_.home(rank);
  const auto known = std::find(numbers_.begin(), numbers_.end(), home) - numbers_.begin();
  if (static_cast<std::size_t>(known) == numbers_.size()) numbers_.push_back(home);
  RankPlace& made = ranks_.emplace_back();
  made.machine = static_cast<std::size_t>(known);
  for (const RankShare& share : places_.on(home))
    if (share.rank == rank) made.share = share;
  if (!uses_drives_) return;
  const UsedSet used{made.machine, set_of_gpu_[static_cast<std::size_t>(made.share.first)]};
  if (std::find(used_sets_.begin(), used_sets_.end(), used) == used_sets_.end()) used_sets_.push_back(used);
}

void TransferLinks::add_machines(const HardwareProfile& hardware, const std::vector<std::int64_t>& cache_levels,
                                 ActivityGraph& graph) {
  for (std::size_t m = 0; m < numbers_.size(); ++m) {
    std::vector<std::int64_t> levels(drive_set_names(hardware).size(), 0);
    for (std::size_t s = 0; s < std::min(used_sets_.size(), cache_levels.size()); ++s)
      if (used_sets_[s].machine == m) levels[used_sets_[s].set] = cache_levels[s];
    machines_.emplace_back(hardware, graph, levels);
  }
  const bool is_one = places_.ranks() == 1;  // with devices of their own
  for (const RankPlace& place : ranks_)
    for (std::size_t gpu = 0; hardware.gpu.shared_hbm_fraction && gpu < (is_one ? machines_[0].gpu_count() : 1);
         ++gpu) {
      const std::size_t at = is_one ? gpu : static_cast<std::size_t>(place.share.first);
      const LinkId hbm = machines_[place.machine].hbm(at);
      shared_memory_.push_back({place.share.rank, static_cast<std::int16_t>(is_one ? static_cast<int>(gpu) : -1), hbm,
                                graph.network().capacity(hbm)});
    }
}

// What one GPU of each rank writes and reads.
void TransferLinks::add_traffic(const Trace& trace) {
  std::vector<Bytes*> sum(trace.lanes.size(), nullptr);
  for (const TransferLane& lane : transfer_lanes_)
    for (RankPlace& rank : ranks_)
      if (lane.tier == Tier::drive && rank.share.rank == lane.rank)
        sum[index_of(lane.lane)] = lane.inbound ? &rank.read : &rank.written;
  for (std::size_t op = 0; op < trace.ops.size(); ++op)
    if (const LaneId lane = trace.ops.lane[op]; lane != LaneId::none && sum[index_of(lane)] != nullptr)
      *sum[index_of(lane)] += trace.ops.bytes[op];
}

// Pairs from both ends of the machine, an odd one in the middle with its neighbour.
PathId TransferLinks::peer_path(const TransferLane& lane, const Machine& machine, std::size_t gpu) const {
  const std::size_t count = machine.gpu_count();
  if (count < 2)
    throw InputError(hardware_name_, "gpu_count", "its one GPU has no other to send to", "take a system of several");
  const std::size_t other = gpu * 2 + 1 == count ? gpu + 1 : count - 1 - gpu;
  return lane.inbound ? machine.peer(other, gpu) : machine.peer(gpu, other);
}

PathId TransferLinks::path_of(const TransferLane& lane, const Machine& machine, std::size_t gpu) const {
  if (lane.to_peer) return peer_path(lane, machine, gpu);
  if (lane.tier == Tier::host) return lane.inbound ? machine.host_to_device(gpu) : machine.device_to_host(gpu);
  const std::size_t set = set_of_gpu_[gpu];
  if (!lane.at_device) return lane.inbound ? machine.drive_to_host(gpu, set) : machine.host_to_drive(gpu, set);
  return lane.inbound ? machine.drive_to_gpu(gpu, set, lane.route) : machine.gpu_to_drive(gpu, set, lane.route);
}

void TransferLinks::add_lane(const TransferLane& lane, ActivityGraph& graph) {
  const RankPlace& rank = *place_of(lane.rank);
  const Machine& machine = machines_[rank.machine];
  const auto first = static_cast<std::size_t>(places_.ranks() > 1 ? rank.share.first : std::max<int>(0, lane.device));
  std::vector<PathId> paths;
  for (std::size_t g = 0; g < static_cast<std::size_t>(rank.share.gpus); ++g)
    paths.push_back(path_of(lane, machine, (first + g) % machine.gpu_count()));
  LaneTransfer transfer{lane.lane, joined(paths, graph), lane.width, Picos{}};
  if (lane.tier == Tier::drive) {
    const NvmeModel& drive = machine.drive_sets()[set_of_gpu_[static_cast<std::size_t>(rank.share.first)]].drive;
    transfer.latency = lane.inbound ? drive.read_latency : drive.write_latency;
  }
  lanes_.push_back(transfer);
}

void TransferLinks::record(const ExecutorState& run, Picos replayed, std::span<const std::int64_t> units,
                           Result& result) const {
  const double seconds = to_seconds(replayed);
  for (std::size_t m = 0; m < machines_.size(); ++m)
    for (const Machine::NamedLink& named : machines_[m].links()) {
      const std::int64_t carried = units.empty() ? run.link_totals(named.link).units : units[index(named.link)];
      if (carried == 0) continue;
      const double possible = to_bytes_per_second(named.capacity) * seconds;
      result.links.push_back({places_.prefix(numbers_[m]) + named.name, Bytes(carried), named.capacity,
                              possible > 0 ? static_cast<double>(carried) / possible : 0});
    }
  for (const std::int64_t machine : places_.kinds())
    if (uses_drives_) record_drives(run, machine, result);
}

void TransferLinks::record_drives(const ExecutorState& run, std::int64_t machine, Result& result) const {
  for (const SharedSet& shared : places_.sets_on(machine, set_of_gpu_)) {
    const Machine::DriveSet& set = machines_.front().drive_sets()[shared.set];
    DriveTraffic traffic{.name = places_.prefix(machine) + set.name, .set = set.name, .drives = set.drives, .gpus = 0};
    bool moves = false;
    for (const RankShare& share : shared.shares) {
      const RankPlace* const rank = place_of(share.rank);
      moves = moves || rank != nullptr;
      const DriveSharer& sharer = traffic.sharers.emplace_back(DriveSharer{
          share.rank, share.gpus, rank != nullptr ? rank->written : Bytes(0), rank != nullptr ? rank->read : Bytes(0)});
      traffic.gpus += sharer.gpus;
      traffic.written += sharer.written * sharer.gpus;
      traffic.read += sharer.read * sharer.gpus;
    }
    for (const UsedSet& used : used_sets_)
      if (numbers_[used.machine] == machine && used.set == shared.set && set_of(used).cache)
        traffic.cache_was_full = run.reservoir(*set_of(used).cache).bypassed() > 0;
    if (moves) result.drives.push_back(std::move(traffic));
  }
}

std::vector<std::int64_t> TransferLinks::cache_levels(const ExecutorState& run) const {
  std::vector<std::int64_t> levels;
  for (const UsedSet& used : used_sets_)
    levels.push_back(set_of(used).cache ? run.reservoir(*set_of(used).cache).level() : 0);
  return levels;
}

std::vector<std::int64_t> TransferLinks::cache_sizes() const {
  std::vector<std::int64_t> sizes;
  for (const UsedSet& used : used_sets_)
    sizes.push_back(set_of(used).cache ? (set_of(used).drive.cache->size * set_of(used).drives).count() : 0);
  return sizes;
}

}  // namespace spillway::sim
