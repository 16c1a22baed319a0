// Where the GPUs are that the ranks of a trace stand for: each rank for as many neighbours, machines filled one after
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
  // gpus: of the whole job, fewer than ranks: one each. Of a trace of one rank, more than a machine has: a machine
  // full.
  RankPlaces(std::size_t ranks, std::int64_t gpus, std::int64_t machine_gpus);

  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(ranks_); }
  // The machine that has most of the rank's GPUs; of several the first.
  [[nodiscard]] std::int64_t home(std::size_t rank) const;
  // The ranks on a machine, ascending.
  [[nodiscard]] std::vector<RankShare> on(std::int64_t machine) const;
  // Machines that differ in who is on them, one of each kind, ascending; of those with fewer GPUs of the same one rank
  // none.
  [[nodiscard]] std::vector<std::int64_t> kinds() const;
  // The drive sets that GPUs of the machine use, as set_of_gpu says, and who shares each: how many GPUs of which rank.
  // Of sets that are shared alike the first; of a machine of one rank its first GPU's.
  [[nodiscard]] std::vector<SharedSet> sets_on(std::int64_t machine, const std::vector<std::size_t>& set_of_gpu) const;
  // "rank 3 ", "ranks 0-3 " before what a machine's links and drives are called; "" where the trace has one rank.
  [[nodiscard]] std::string prefix(std::int64_t machine) const;

 private:
  std::int64_t ranks_, each_, machine_gpus_;
};

}  // namespace spillway::sim
