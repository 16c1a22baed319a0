// The machine under a replay: where copies and transfers of each rank go, and what they did to links and drives.
//
// A trace of one rank stands for a machine of which `gpus_alike` GPUs do the same at the same time, each with its own
// data: where their paths share a link (a switch, DRAM, a drive set), a transfer of the one takes its share of the link
// as often as GPUs would cross it. That is exact while they keep in step. Of a trace of several ranks each has a
// machine of its own, alike in the same way: stages on one machine are taken to be as busy as one another.
// A GPU writes to the drive set of that name, or to number (GPU mod sets).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hwprofiles/hardware_profile.h"
#include "sim/devices/machine.h"
#include "sim/engine/executor_state.h"
#include "sim/replay/lowering.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/result.h"

namespace spillway::sim {

class TransferLinks {
 public:
  // Adds links, paths and reservoirs to `graph`. cache_levels: bytes in each rank's drive set at the start, as given by
  // cache_levels() of an earlier run; empty: empty caches. planned: null for a plain trace, whose own transfer lanes
  // are served as well (transfer_lane.h).
  // Throws InputError when a planned transfer has nowhere to go: no PCIe tree, no drives, no set of that name.
  TransferLinks(const Trace& trace, const HardwareProfile& hardware, const PlannedTrace* planned,
                std::int64_t gpus_alike, const std::vector<std::int64_t>& cache_levels, ActivityGraph& graph);

  [[nodiscard]] const CopyPaths& copies() const { return copies_; }
  [[nodiscard]] const std::vector<LaneTransfer>& lanes() const { return lanes_; }

  // Of the GPUs simulated, where their profile says that kernels and copies share device memory.
  [[nodiscard]] const std::vector<SharedMemory>& shared_memory() const { return shared_memory_; }

  // Links that carried anything; drives that were written or read. units: by link, in place of what the run carried;
  // empty: that.
  void record(const ExecutorState& run, Picos replayed, std::span<const std::int64_t> units, Result& result) const;
  [[nodiscard]] std::vector<std::int64_t> cache_levels(const ExecutorState& run) const;
  // Sizes of the write caches, in the same order; 0: none.
  [[nodiscard]] std::vector<std::int64_t> cache_sizes() const;

 private:
  struct RankMachine {
    std::string prefix;  // of its links' names
    Machine machine;
    std::optional<std::size_t> drive_set;  // the simulated GPU's
    std::int64_t set_gpus = 0;             // of those alike, that share it
  };

  void add_machine(const Trace& trace, const HardwareProfile& hardware, std::uint16_t rank, std::int16_t device,
                   const std::vector<std::int64_t>& cache_levels, ActivityGraph& graph);
  void add_lane(const TransferLane& lane, ActivityGraph& graph);
  [[nodiscard]] PathId peer_path(const TransferLane& lane, const Machine& machine, std::size_t gpu) const;
  [[nodiscard]] PathId path_of(const TransferLane& lane, const Machine& machine, std::size_t gpu) const;
  // Of the GPU's machine.
  [[nodiscard]] std::size_t drive_set(std::size_t gpu) const;

  std::string hardware_name_, wanted_set_;
  std::vector<std::string> set_names_;
  std::int64_t gpus_alike_ = 1;
  std::vector<TransferLane> transfer_lanes_;
  std::vector<RankMachine> machines_;
  std::vector<std::uint16_t> machine_rank_;  // rank of each machine
  CopyPaths copies_;
  std::vector<LaneTransfer> lanes_;
  std::vector<SharedMemory> shared_memory_;
};

}  // namespace spillway::sim
