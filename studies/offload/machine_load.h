// The bytes that the GPUs of one machine move to and from drives in a step, each as the rank that it belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/devices/rank_places.h"
#include "studies/offload/offload_traffic.h"
#include "studies/offload/storage_links.h"

namespace spillway::studies {

class MachineLoad {
 public:
  // The load of the machine with the drive set that most is written to, of those that a job of so many GPUs is on. A
  // machine has `sets`, and GPU i uses number i modulo sets. numbers: sets that count, empty: all.
  MachineLoad(const OffloadTraffic& traffic, std::int64_t gpus, std::int64_t machine_gpus, std::int64_t sets,
              const std::vector<std::size_t>& numbers = {});

  // To and from that set by all GPUs that share it, and how many these are.
  [[nodiscard]] const DriveLoad& of_set() const { return of_set_; }
  [[nodiscard]] std::int64_t sharers() const { return sharers_; }
  // Shares of each GPU of the machine, over what the GPU that writes most of all moves (OffloadTraffic::load).
  [[nodiscard]] const std::vector<GpuShare>& gpus() const { return gpus_; }
  // Before the names of the machine's links in a result.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  DriveLoad of_set_;
  std::int64_t sharers_ = 0;
  std::vector<GpuShare> gpus_;
  std::string prefix_;
};

}  // namespace spillway::studies
