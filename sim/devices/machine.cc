#include "sim/devices/machine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"

namespace spillway::sim {
namespace {

Rate scaled(Rate rate, double factor) { return rate_from_bytes_per_second(to_bytes_per_second(rate) * factor); }

// Payload rate of a tree link between a slot and a device of this generation and width.
Rate payload_rate(const HostProfile& host, std::int64_t generation, std::int64_t lanes) {
  return scaled(pcie_raw_rate(generation, lanes), host.pcie_payload_efficiency.value);
}

bool slower(const PcieNode& slot, const Sourced<std::int64_t>& generation, const Sourced<std::int64_t>& lanes) {
  return (slot.generation && slot.generation->value < generation.value) ||
         (slot.lanes && slot.lanes->value < lanes.value);
}

// The slot's rate for a device: the lesser generation and width of the two, and the slot's own limit.
Rate slot_rate(const HostProfile& host, const PcieNode& slot, const Sourced<std::int64_t>& generation,
               const Sourced<std::int64_t>& lanes) {
  const std::int64_t g = slot.generation ? std::min(slot.generation->value, generation.value) : generation.value;
  const std::int64_t l = slot.lanes ? std::min(slot.lanes->value, lanes.value) : lanes.value;
  const Rate rate = payload_rate(host, g, l);
  return slot.bandwidth ? std::min(rate, slot.bandwidth->value) : rate;
}

Rate gpu_rate(const HardwareProfile& profile, const PcieNode& slot, const Maybe<Rate>& measured) {
  const GpuProfile& gpu = profile.gpu;
  if (gpu.cpu_link_bandwidth) return measured ? measured->value : gpu.cpu_link_bandwidth->value;
  const Rate link = slot_rate(profile.host, slot, gpu.pcie_generation, gpu.pcie_lanes);
  if (!measured) return link;
  return slower(slot, gpu.pcie_generation, gpu.pcie_lanes) || slot.bandwidth ? std::min(link, measured->value)
                                                                             : measured->value;
}

// The lesser of the limits stated, or nothing when neither binds below the sum of both directions.
std::optional<Rate> duplex_limit(const Maybe<Rate>& first, const Maybe<Rate>& second, Rate sum) {
  Rate limit = sum;
  if (first) limit = std::min(limit, first->value);
  if (second) limit = std::min(limit, second->value);
  return limit < sum ? std::optional(limit) : std::nullopt;
}

// Rounded down, so that no link binds early; the margin undoes rounding of sums such as 6 * (1/6).
std::uint32_t usage_factor(double usage) {
  const double factor = std::floor(usage * full_usage + 1e-6);
  return static_cast<std::uint32_t>(std::clamp(factor, 1.0, static_cast<double>(max_usage)));
}

}  // namespace

std::vector<std::string> drive_set_names(const HardwareProfile& profile) {
  std::vector<std::string> names;
  for (const DriveGroup& group : profile.drives) {
    if (group.raid0) names.push_back(group.name);
    for (std::size_t i = 0; !group.raid0 && i < group.slots.size(); ++i)
      names.push_back(group.name + "." + std::to_string(i));
  }
  return names;
}

std::vector<std::size_t> drive_sets_of_gpus(const HardwareProfile& profile, const std::string& wanted) {
  const std::vector<std::string> names = drive_set_names(profile);
  const std::string& where = profile.path.empty() ? profile.name : profile.path;
  if (names.empty())
    throw InputError(where, "drives", "the system has no drives to offload to",
                     "take a machine with drives, or name some: \"offload\": {\"drives\": "
                     "\"samsung-990-pro-2tb\", \"drives_per_machine\": 4}");
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (!wanted.empty() && found == names.end())
    throw InputError(where, "drives", "there is no drive set named '" + wanted + "'",
                     fmt::format("take one of {}", fmt::join(names, ", ")));
  std::vector<std::size_t> sets;
  for (std::size_t gpu = 0; gpu < static_cast<std::size_t>(profile.gpu_count); ++gpu)
    sets.push_back(wanted.empty() ? gpu % names.size() : static_cast<std::size_t>(found - names.begin()));
  return sets;
}

Machine::Machine(const HardwareProfile& profile, ActivityGraph& graph, std::span<const std::int64_t> cache_levels) {
  SPILLWAY_ASSERT(profile.gpu_slots.size() == static_cast<std::size_t>(profile.gpu_count));
  dram_ = add_link(graph, "DRAM", profile.host.dram_bandwidth.value);
  add_nodes(graph, profile);
  add_gpus(graph, profile);
  add_drives(graph, profile, cache_levels);
  const double hbm_usage = profile.gpu.hbm_contention_factor.value;
  add_copy_paths(graph, hbm_usage);
  add_peer_paths(graph, hbm_usage);
  add_drive_paths(graph, profile.host, hbm_usage);
}

LinkId Machine::add_link(ActivityGraph& graph, std::string name, Rate capacity) {
  const LinkId link = graph.add_link(capacity);
  links_.push_back({std::move(name), link, capacity});
  return link;
}

PathId Machine::add_path(ActivityGraph& graph, Hops hops) const {
  Hops merged;
  for (const Hop& hop : hops) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Hop& m) { return m.link == hop.link; });
    if (same == merged.end()) {
      merged.push_back(hop);
    } else {
      same->usage += hop.usage;
    }
  }
  const auto allows = [&](const Hop& hop) {
    return static_cast<double>(graph.network().capacity(hop.link).count()) / hop.usage;
  };
  std::stable_sort(merged.begin(), merged.end(),
                   [&](const Hop& a, const Hop& b) { return a.always != b.always ? a.always : allows(a) < allows(b); });
  if (merged.size() > max_hops) merged.resize(max_hops);
  std::vector<PathEntry> entries;
  for (const Hop& hop : merged) entries.push_back({hop.link, usage_factor(hop.usage)});
  return graph.add_path(entries);
}

// Slots without a device get no link; those of GPUs are added by add_gpus, those of drives are part of the set's rate.
void Machine::add_nodes(ActivityGraph& graph, const HardwareProfile& profile) {
  const HostProfile& host = profile.host;
  std::size_t roots = 0;
  for (const PcieNode& node : host.pcie) {
    Node added{node.up, std::nullopt, std::nullopt, std::nullopt};
    if (node.kind == PcieNodeKind::root_complex) ++roots;
    if (node.kind == PcieNodeKind::pcie_switch) {
      const Rate rate = node.bandwidth                  ? node.bandwidth->value
                        : node.generation && node.lanes ? payload_rate(host, node.generation->value, node.lanes->value)
                                                        : max_capacity;
      added.up = add_link(graph, node.name + " up", rate);
      added.down = add_link(graph, node.name + " down", rate);
      if (const auto limit = duplex_limit(node.duplex_bandwidth, {}, rate * 2)) {
        added.duplex = add_link(graph, node.name + " duplex", *limit);
      }
    }
    nodes_.push_back(added);
  }
  if (roots > 1 && host.socket_bandwidth) {
    socket_up_ = add_link(graph, "sockets up", host.socket_bandwidth->value);
    socket_down_ = add_link(graph, "sockets down", host.socket_bandwidth->value);
  }
}

void Machine::add_gpus(ActivityGraph& graph, const HardwareProfile& profile) {
  const GpuProfile& model = profile.gpu;
  const bool fabric = profile.gpu_count > 1 && profile.scale_up && !profile.scale_up->technology.starts_with("PCIe");
  for (std::size_t i = 0; i < profile.gpu_slots.size(); ++i) {
    const std::string name = "gpu" + std::to_string(i);
    Gpu gpu;
    gpu.node = profile.gpu_slots[i];
    const PcieNode& slot = profile.host.pcie[gpu.node];
    const Rate in = gpu_rate(profile, slot, model.host_to_device_bandwidth);
    const Rate out = gpu_rate(profile, slot, model.device_to_host_bandwidth);
    gpu.hbm = add_link(
        graph, name + " HBM",
        scaled(model.memory_bandwidth.value, model.shared_hbm_fraction ? model.shared_hbm_fraction->value : 1));
    gpu.copy_in = add_link(graph, name + " copy in", in);
    gpu.copy_out = add_link(graph, name + " copy out", out);
    Node& node = nodes_[gpu.node];
    node.down = add_link(graph, name + " down", in);
    node.up = add_link(graph, name + " up", out);
    if (const auto limit = duplex_limit(model.duplex_bandwidth, slot.duplex_bandwidth, in + out)) {
      node.duplex = add_link(graph, name + " duplex", *limit);
    }
    if (fabric) {
      const Rate rate = scaled(profile.scale_up->bandwidth.value, profile.scale_up->efficiency.value);
      gpu.fabric_in = add_link(graph, name + " " + profile.scale_up->technology + " in", rate);
      gpu.fabric_out = add_link(graph, name + " " + profile.scale_up->technology + " out", rate);
    }
    gpus_.push_back(gpu);
  }
}

void Machine::add_drives(ActivityGraph& graph, const HardwareProfile& profile,
                         std::span<const std::int64_t> cache_levels) {
  const std::vector<std::string> names = drive_set_names(profile);
  const auto level = [&] { return drive_sets_.size() < cache_levels.size() ? cache_levels[drive_sets_.size()] : 0; };
  for (const DriveGroup& group : profile.drives) {
    SPILLWAY_ASSERT(group.slots.size() == static_cast<std::size_t>(group.count));
    const NvmeModel model = nvme_model(group.drive);
    DriveSet set;
    set.drive = model;
    if (group.raid0) {
      set.name = names[drive_sets_.size()];
      add_drive_set(graph, profile.host, group, set, group.slots, level());
      continue;
    }
    for (std::size_t i = 0; i < group.slots.size(); ++i) {
      set.name = names[drive_sets_.size()];
      add_drive_set(graph, profile.host, group, set, {group.slots[i]}, level());
    }
  }
}

void Machine::add_drive_set(ActivityGraph& graph, const HostProfile& host, const DriveGroup& group, DriveSet set,
                            const std::vector<std::size_t>& slots, std::int64_t cache_level) {
  NvmeModel& drive = set.drive;
  Rate link = unlimited_rate;
  for (const std::size_t slot : slots) {
    const PcieNode& node = host.pcie[slot];
    set.branches.push_back(node.up.value_or(slot));
    if (slower(node, group.drive.pcie_generation, group.drive.pcie_lanes) || node.bandwidth) {
      link = std::min(link, slot_rate(host, node, group.drive.pcie_generation, group.drive.pcie_lanes));
    }
  }
  const auto n = static_cast<std::int64_t>(slots.size());
  set.drives = n;
  const Rate read = std::min({drive.read, drive.read_window, link}) * n;
  const Rate write = std::min({drive.write, drive.write_window, link}) * n;
  set.read = add_link(graph, set.name + " read", read);
  set.write = add_link(graph, set.name + " write", write);
  if (drive.interference > 0) {
    set.media = add_link(graph, set.name + " media", scaled(drive.read * n, 2 - drive.interference));
  }
  if (drive.cache && drive.cache->drain * n < write) {
    const Rate steady = drive.cache->drain * n;
    ReservoirSpec spec;
    spec.link = set.write;
    spec.size = (drive.cache->size * n).count();
    spec.resume_level = (drive.cache->resume_level * n).count();
    spec.initial_level = std::min(cache_level, spec.size);
    spec.drain = steady;
    spec.fast = write;
    spec.slow = steady;
    spec.fold_level = (drive.cache->fold_level * n).count();
    spec.fold = std::min(drive.cache->fold * n, write);
    set.cache = graph.add_reservoir(spec);
  }
  drive_sets_.push_back(std::move(set));
}

std::size_t Machine::root_of(std::size_t node) const {
  while (nodes_[node].parent) node = *nodes_[node].parent;
  return node;
}

void Machine::route(Hops& hops, std::size_t from, std::size_t to, double usage) const {
  // Parents come first, so the higher index is never an ancestor of the lower one: climb from it until both meet.
  const auto pass = [&](const Node& node, const std::optional<LinkId>& direction) {
    if (direction) hops.push_back({*direction, usage});
    if (node.duplex) hops.push_back({*node.duplex, usage});
  };
  while (from != to) {
    const bool climb_from = nodes_[from].parent && (from > to || !nodes_[to].parent);
    if (climb_from) {
      pass(nodes_[from], nodes_[from].up);
      from = *nodes_[from].parent;
    } else if (nodes_[to].parent) {
      pass(nodes_[to], nodes_[to].down);
      to = *nodes_[to].parent;
    } else {
      const std::optional<LinkId>& socket = from < to ? socket_up_ : socket_down_;
      if (socket) hops.push_back({*socket, usage});
      return;
    }
  }
}

void Machine::add_copy_paths(ActivityGraph& graph, double hbm_usage) {
  for (Gpu& gpu : gpus_) {
    Hops in = {{dram_}, {gpu.copy_in}, {gpu.hbm, hbm_usage}};
    route(in, root_of(gpu.node), gpu.node, 1);
    gpu.host_in = add_path(graph, in);
    Hops out = {{dram_}, {gpu.copy_out}, {gpu.hbm, hbm_usage}};
    route(out, gpu.node, root_of(gpu.node), 1);
    gpu.host_out = add_path(graph, out);
  }
}

void Machine::add_peer_paths(ActivityGraph& graph, double hbm_usage) {
  for (const Gpu& from : gpus_) {
    for (const Gpu& to : gpus_) {
      Hops hops = {{from.hbm, hbm_usage}, {to.hbm, hbm_usage}};
      if (&from == &to) {
        hops = {{from.hbm, 2}};
      } else if (from.fabric_out && to.fabric_in) {
        hops.push_back({*from.fabric_out});
        hops.push_back({*to.fabric_in});
      } else {
        hops.push_back({from.copy_out});
        route(hops, from.node, to.node, 1);
      }
      peers_.push_back(add_path(graph, hops));
    }
  }
}

void Machine::add_drive_hops(Hops& hops, const DriveSet& set, std::size_t start, bool write) const {
  hops.push_back({write ? set.write : set.read, 1, true});
  if (set.media) {
    const double reads_per_write =
        static_cast<double>(set.drive.read.count()) / static_cast<double>(set.drive.write.count());
    hops.push_back({*set.media, write ? reads_per_write : 1});
  }
  for (const std::size_t branch : set.branches) {
    const double share = 1 / static_cast<double>(set.drives);
    if (write)
      route(hops, start, branch, share);
    else
      route(hops, branch, start, share);
  }
}

Machine::Hops Machine::drive_hops(const Gpu& gpu, const DriveSet& set, const HostProfile& host, DriveRoute kind,
                                  bool write, double hbm_usage) const {
  Hops hops = {{gpu.hbm, hbm_usage}};
  std::size_t start = gpu.node;
  if (kind == DriveRoute::bounce) {
    start = root_of(gpu.node);
    hops.push_back({write ? gpu.copy_out : gpu.copy_in});
    hops.push_back({dram_, host.bounce_copies.value});
    if (write)
      route(hops, gpu.node, start, 1);
    else
      route(hops, start, gpu.node, 1);
  }
  add_drive_hops(hops, set, start, write);
  return hops;
}

Machine::Hops Machine::host_drive_hops(const Gpu& gpu, const DriveSet& set, bool write) const {
  Hops hops = {{dram_}};
  add_drive_hops(hops, set, root_of(gpu.node), write);
  return hops;
}

void Machine::add_drive_paths(ActivityGraph& graph, const HostProfile& host, double hbm_usage) {
  for (const Gpu& gpu : gpus_) {
    for (const DriveSet& set : drive_sets_) {
      const auto path = [&](DriveRoute kind, bool write) {
        return add_path(graph, drive_hops(gpu, set, host, kind, write, hbm_usage));
      };
      drive_paths_.push_back({path(DriveRoute::gpudirect, true), path(DriveRoute::bounce, true),
                              path(DriveRoute::gpudirect, false), path(DriveRoute::bounce, false),
                              add_path(graph, host_drive_hops(gpu, set, true)),
                              add_path(graph, host_drive_hops(gpu, set, false))});
    }
  }
}

const Machine::DrivePaths& Machine::paths_of(std::size_t gpu, std::size_t drive_set) const {
  SPILLWAY_ASSERT(gpu < gpus_.size() && drive_set < drive_sets_.size());
  return drive_paths_[gpu * drive_sets_.size() + drive_set];
}

PathId Machine::gpu_to_drive(std::size_t gpu, std::size_t drive_set, DriveRoute kind) const {
  const DrivePaths& paths = paths_of(gpu, drive_set);
  return kind == DriveRoute::gpudirect ? paths.write_direct : paths.write_bounce;
}

PathId Machine::drive_to_gpu(std::size_t gpu, std::size_t drive_set, DriveRoute kind) const {
  const DrivePaths& paths = paths_of(gpu, drive_set);
  return kind == DriveRoute::gpudirect ? paths.read_direct : paths.read_bounce;
}

PathId Machine::host_to_drive(std::size_t gpu, std::size_t drive_set) const {
  return paths_of(gpu, drive_set).write_host;
}

PathId Machine::drive_to_host(std::size_t gpu, std::size_t drive_set) const {
  return paths_of(gpu, drive_set).read_host;
}

}  // namespace spillway::sim
