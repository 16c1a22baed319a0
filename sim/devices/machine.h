// One machine of a HardwareProfile as engine links, and the paths that transfers take over them.
//
//   HBM ── copy engine in/out ── GPU's slot link ── switch uplink ── root complex ── DRAM
//                                (up, down, duplex) (up, down, duplex)   │
//   NVLink out/in per GPU         drive sets: read, write, media  ── socket link ── other root complex
//
// PCIe. Each node has a link up and one down. If both directions together carry less than their sum (PcieNode and
// GpuProfile duplex_bandwidth), both also pass a *duplex* link of that capacity. It is shared max-min fairly; real
// hosts may favour one direction.
// GPU rates: the profile's measured pinned-copy rate, else raw link rate x the host's payload efficiency. That product
// also limits the measured rate if the slot is slower than the GPU's own link or states its own limit. A chip-to-chip
// CPU link (GH200) stands in for the GPU's slot link.
// DRAM is one link for all sockets, reads and writes together. Host buffers lie on the GPU's own socket.
//
// Drives. A RAID-0 group of n equal drives moves in lock step. It is one read link and one write link of n times the
// drive's rate, and one write cache of n times its size. A transfer puts 1/n of each byte on each drive's branch of the
// tree. A drive's own slot counts only when slower than the drive's link. Reads at r and writes at w share a media
// link, r + w * R/W <= R * (2 - interference) (see nvme_drive.h), R/W taken as at most 16.
//
// Paths hold at most max_hops links. Longer ones keep a drive set's write link and the links with the least capacity
// over usage, which never changes the rate of a transfer alone. Latencies are not part of a path:
// GpuProfile::copy_latency and NvmeModel::read_latency, write_latency are delays for the caller to add. Building:
// O(GPUs^2 + GPUs * drives) times the tree's depth. Value type; ids belong to the graph given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "sim/devices/nvme_drive.h"
#include "sim/engine/activity_graph.h"

namespace spillway::sim {

// `gpudirect`: the drive reads and writes GPU memory itself. `bounce`: through a pinned host buffer by a copy engine,
// crossing DRAM HostProfile::bounce_copies times, pipelined so that the tightest link sets the rate.
enum class DriveRoute : std::uint8_t { gpudirect, bounce };

// Names of the profile's drive sets, in their order.
std::vector<std::string> drive_set_names(const HardwareProfile& profile);

// For each GPU of the machine, which of these it writes to: that named `wanted`, or, where it is empty, number GPU mod
// sets. Throws InputError where there are no drives, or none of that name.
std::vector<std::size_t> drive_sets_of_gpus(const HardwareProfile& profile, const std::string& wanted);

class Machine {
 public:
  struct NamedLink {
    std::string name;  // "gpu0 copy in", "sw1 up", "scratch write", "DRAM"
    LinkId link{};
    Rate capacity{};  // of a governed write link: while its cache is not full
  };
  struct DriveSet {
    std::string name;  // of the group; without raid0 one set per drive, "scratch.3"
    NvmeModel drive;   // one drive
    std::int64_t drives = 1;
    LinkId read{}, write{};
    std::optional<LinkId> media;        // absent when reads and writes don't interfere
    std::optional<ReservoirId> cache;   // absent when the set never drops below its first rate
    std::vector<std::size_t> branches;  // PCIe node above each drive
  };

  // Adds links, paths and reservoirs to `graph`. Throws InputError when a drive states no rates. `cache_levels`: bytes
  // in each drive set's write cache at the start, in the order of drive_sets(), at most its size; missing entries are
  // 0. Precondition: slots are assigned (assign_slots).
  Machine(const HardwareProfile& profile, ActivityGraph& graph, std::span<const std::int64_t> cache_levels = {});

  [[nodiscard]] std::size_t gpu_count() const { return gpus_.size(); }
  [[nodiscard]] const std::vector<DriveSet>& drive_sets() const { return drive_sets_; }
  // In order of creation.
  [[nodiscard]] const std::vector<NamedLink>& links() const { return links_; }

  // Device memory that copies and, with GpuProfile::shared_hbm_fraction, kernels use.
  [[nodiscard]] LinkId hbm(std::size_t gpu) const { return gpus_.at(gpu).hbm; }
  // Pinned copies between host memory and a GPU.
  [[nodiscard]] PathId host_to_device(std::size_t gpu) const { return gpus_.at(gpu).host_in; }
  [[nodiscard]] PathId device_to_host(std::size_t gpu) const { return gpus_.at(gpu).host_out; }
  // From one GPU to another, or within one (HBM, read and written): NVLink or its like where the machine has it,
  // else over PCIe.
  [[nodiscard]] PathId peer(std::size_t from, std::size_t to) const { return peers_.at(from * gpus_.size() + to); }
  [[nodiscard]] PathId gpu_to_drive(std::size_t gpu, std::size_t drive_set, DriveRoute kind) const;
  [[nodiscard]] PathId drive_to_gpu(std::size_t gpu, std::size_t drive_set, DriveRoute kind) const;
  // Between a set and host memory on the GPU's own socket, crossing DRAM once.
  [[nodiscard]] PathId host_to_drive(std::size_t gpu, std::size_t drive_set) const;
  [[nodiscard]] PathId drive_to_host(std::size_t gpu, std::size_t drive_set) const;

 private:
  struct Gpu {
    std::size_t node = 0;
    LinkId hbm{}, copy_in{}, copy_out{};
    std::optional<LinkId> fabric_in, fabric_out;
    PathId host_in{}, host_out{};
  };
  struct Node {
    std::optional<std::size_t> parent;
    std::optional<LinkId> up, down, duplex;
  };
  struct Hop {
    LinkId link{};
    double usage = 1;
    bool always = false;  // kept however long the path
  };
  using Hops = std::vector<Hop>;
  struct DrivePaths {
    PathId write_direct{}, write_bounce{}, read_direct{}, read_bounce{}, write_host{}, read_host{};
  };

  LinkId add_link(ActivityGraph& graph, std::string name, Rate capacity);
  PathId add_path(ActivityGraph& graph, Hops hops) const;
  void add_nodes(ActivityGraph& graph, const HardwareProfile& profile);
  void add_gpus(ActivityGraph& graph, const HardwareProfile& profile);
  void add_drives(ActivityGraph& graph, const HardwareProfile& profile, std::span<const std::int64_t> cache_levels);
  void add_drive_set(ActivityGraph& graph, const HostProfile& host, const DriveGroup& group, DriveSet set,
                     const std::vector<std::size_t>& slots, std::int64_t cache_level);
  void add_copy_paths(ActivityGraph& graph, double hbm_usage);
  void add_peer_paths(ActivityGraph& graph, double hbm_usage);
  void add_drive_paths(ActivityGraph& graph, const HostProfile& host, double hbm_usage);

  [[nodiscard]] std::size_t root_of(std::size_t node) const;
  // The tree's links from one node to another, socket link included, each used by `usage` per byte.
  void route(Hops& hops, std::size_t from, std::size_t to, double usage) const;
  [[nodiscard]] Hops drive_hops(const Gpu& gpu, const DriveSet& set, const HostProfile& host, DriveRoute kind,
                                bool write, double hbm_usage) const;
  [[nodiscard]] Hops host_drive_hops(const Gpu& gpu, const DriveSet& set, bool write) const;
  // The set's own links, and those from `start` to each of its drives or back.
  void add_drive_hops(Hops& hops, const DriveSet& set, std::size_t start, bool write) const;
  [[nodiscard]] const DrivePaths& paths_of(std::size_t gpu, std::size_t drive_set) const;

  std::vector<NamedLink> links_;
  std::vector<Node> nodes_;  // as HostProfile::pcie
  std::vector<Gpu> gpus_;
  std::vector<DriveSet> drive_sets_;
  std::vector<PathId> peers_;            // from * gpus + to
  std::vector<DrivePaths> drive_paths_;  // gpu * drive sets + set
  LinkId dram_{};
  std::optional<LinkId> socket_up_, socket_down_;  // from lower to higher root complex, and back
};

}  // namespace spillway::sim
