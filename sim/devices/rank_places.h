// The GPUs that the ranks of a trace stand for. Each rank stands for as many neighbours, machines filled one after
// another (ParallelLayout's order, pipeline stages outermost). So several stages may be on one machine, and one stage
// on several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spillway::sim {

// GPUs of one machine that do as one rank does: `first` and those after it.
struct RankShare {
  std::uint16_t rank = 0;
  std::int64_t first = 0, gpus = 0;
  bool operator==(const RankShare&) const = default;
};

struct SharedSet {
  std::size_t set = 0;
  std::vector<RankShare> shares;  // `first`: of the rank's GPUs that use it
};

class RankPlaces {
 public:
  // gpus: of the whole job. Fewer than ranks: one each. A trace of one rank takes at most one full machine.
  RankPlaces(std::size_t ranks, std::int64_t gpus, std::int64_t machine_gpus);

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(ranks_); }
  // The machine that has most of the rank's GPUs; of several the first.
  [[nodiscard]] std::int64_t home(std::size_t rank) const;
  // The ranks on a machine, ascending.
  [[nodiscard]] std::vector<RankShare> on(std::int64_t machine) const;
  // Machines that differ in the ranks on them, one of each kind, ascending. A rank alone on several machines counts
  // once: its home().
  [[nodiscard]] std::vector<std::int64_t> kinds() const;
  // The drive sets that GPUs of the machine use (`set_of_gpu`), each with its number of GPUs by rank. Sets that are
  // shared alike count once; a machine of one rank has only its first GPU's set.
  [[nodiscard]] std::vector<SharedSet> sets_on(std::int64_t machine, const std::vector<std::size_t>& set_of_gpu) const;
  // "rank 3 ", "ranks 0-3 " before what a machine's links and drives are called; "" where the trace has one rank.
  [[nodiscard]] std::string prefix(std::int64_t machine) const;

 private:
  std::int64_t ranks_, each_, machine_gpus_;
};

}  // namespace spillway::sim
