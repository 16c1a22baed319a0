// The machine under a replay: where copies and transfers of each rank go, and what they did to links and drives.
//
// A rank stands for GPUs that do the same at the same time, each with its own data. If their paths share a link (a
// switch, DRAM, a drive set), one transfer takes its part of the link once for each GPU that would cross it. That is
// exact while they keep in step. Ranks on one machine (RankPlaces) share its links and drives. A rank on several
// machines is simulated on the one that has most of its GPUs. A GPU writes to the drive set of that name, or to number
// (GPU mod sets).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "sim/devices/machine.h"
#include "sim/devices/rank_places.h"
#include "sim/engine/executor_state.h"
#include "sim/replay/lowering.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/result.h"

namespace spillway::sim {

class TransferLinks {
 public:
  // Adds links, paths and reservoirs to `graph`. `gpus`: of all ranks. `cache_levels`: bytes in the drive sets used at
  // the start, by cache_levels() of an earlier run; empty: none. `planned`: null for a plain trace. Its own transfer
  // lanes are served in any case (transfer_lane.h).
  // Throws InputError when a planned transfer has nowhere to go: no PCIe tree, no drives, no set of that name.
  TransferLinks(const Trace& trace, const HardwareProfile& hardware, const PlannedTrace* planned, std::int64_t gpus,
                const std::vector<std::int64_t>& cache_levels, ActivityGraph& graph);

  [[nodiscard]] bool uses_drives() const { return uses_drives_; }
  [[nodiscard]] const CopyPaths& copies() const { return copies_; }
  [[nodiscard]] const std::vector<LaneTransfer>& lanes() const { return lanes_; }

  // Device memory of the GPUs simulated; empty unless their profile says that kernels and copies share it.
  [[nodiscard]] const std::vector<SharedMemory>& shared_memory() const { return shared_memory_; }

  // Links that carried anything; drives that were written or read. units: by link, in place of what the run carried;
  // empty: that.
  void record(const ExecutorState& run, Picos replayed, std::span<const std::int64_t> units, Result& result) const;
  [[nodiscard]] std::vector<std::int64_t> cache_levels(const ExecutorState& run) const;
  // Sizes of the write caches, in the same order; 0: none.
  [[nodiscard]] std::vector<std::int64_t> cache_sizes() const;

 private:
  struct RankPlace {
    RankShare share;  // on its home
    std::size_t machine = 0;
    Bytes written{}, read{};  // to and from drives, by one GPU
  };
  struct UsedSet {
    std::size_t machine = 0, set = 0;
    bool operator==(const UsedSet&) const = default;
  };

  void place(std::uint16_t rank);
  void add_machines(const HardwareProfile& hardware, const std::vector<std::int64_t>& cache_levels,
                    ActivityGraph& graph);
  void add_lane(const TransferLane& lane, ActivityGraph& graph);
  void add_traffic(const Trace& trace);
  [[nodiscard]] const RankPlace* place_of(std::uint16_t rank) const;
  void record_drives(const ExecutorState& run, std::int64_t machine, Result& result) const;
  [[nodiscard]] const Machine::DriveSet& set_of(const UsedSet& used) const {
    return machines_[used.machine].drive_sets()[used.set];
  }
  [[nodiscard]] PathId peer_path(const TransferLane& lane, const Machine& machine, std::size_t gpu) const;
  [[nodiscard]] PathId path_of(const TransferLane& lane, const Machine& machine, std::size_t gpu) const;

  std::string hardware_name_;
  RankPlaces places_;
  std::vector<TransferLane> transfer_lanes_;
  bool uses_drives_ = false;
  std::vector<std::size_t> set_of_gpu_;  // with drives
  std::vector<RankPlace> ranks_;         // that are simulated
  std::vector<std::int64_t> numbers_;    // of the machines they are on
  std::vector<Machine> machines_;        // in the same order
  std::vector<UsedSet> used_sets_;       // by the first GPU of each rank
  CopyPaths copies_;
  std::vector<LaneTransfer> lanes_;
  std::vector<SharedMemory> shared_memory_;
};

}  // namespace spillway::sim
