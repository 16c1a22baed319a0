#include "sim/devices/rank_places.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace spillway::sim {

RankPlaces::RankPlaces(std::size_t ranks, std::int64_t gpus, std::int64_t machine_gpus)
    : ranks_(std::max<std::int64_t>(1, static_cast<std::int64_t>(ranks))),
      each_(std::max<std::int64_t>(1, gpus / ranks_)),
      machine_gpus_(std::max<std::int64_t>(1, machine_gpus)) {
  if (ranks_ == 1) each_ = std::min(each_, machine_gpus_);
}

std::int64_t RankPlaces::home(std::size_t rank) const {
  const std::int64_t first = static_cast<std::int64_t>(rank) * each_, end = first + each_;
  const std::int64_t begins = first / machine_gpus_;
  const auto gpus_on = [&](std::int64_t machine) {
    return std::min(end, (machine + 1) * machine_gpus_) - std::max(first, machine * machine_gpus_);
  };
  return end > (begins + 1) * machine_gpus_ && gpus_on(begins + 1) > gpus_on(begins) ? begins + 1 : begins;
}

std::vector<RankShare> RankPlaces::on(std::int64_t machine) const {
  std::vector<RankShare> shares;
  const std::int64_t begin = machine * machine_gpus_, end = begin + machine_gpus_;
  for (std::int64_t rank = begin / each_; rank < std::min(ranks_, (end + each_ - 1) / each_); ++rank) {
    const std::int64_t first = std::max(begin, rank * each_);
    shares.push_back({static_cast<std::uint16_t>(rank), first - begin, std::min(end, (rank + 1) * each_) - first});
  }
  return shares;
}

std::vector<std::int64_t> RankPlaces::kinds() const {
  std::set<std::int64_t> kinds;
  for (std::int64_t rank = 0; rank < ranks_; ++rank) {
    kinds.insert(home(static_cast<std::size_t>(rank)));
    const std::int64_t last = ((rank + 1) * each_ - 1) / machine_gpus_;
    if (on(last).size() > 1) kinds.insert(last);
  }
  return {kinds.begin(), kinds.end()};
}

std::vector<SharedSet> RankPlaces::sets_on(std::int64_t machine, const std::vector<std::size_t>& set_of_gpu) const {
  std::vector<SharedSet> sets;
  const std::vector<RankShare> shares = on(machine);
  for (const RankShare& share : shares)
    for (std::int64_t gpu = share.first; gpu < share.first + share.gpus; ++gpu) {
      const std::size_t number = set_of_gpu[static_cast<std::size_t>(gpu)];
      auto set = std::find_if(sets.begin(), sets.end(), [&](const SharedSet& one) { return one.set == number; });
      if (set == sets.end()) set = sets.insert(sets.end(), {number, {}});
      if (set->shares.empty() || set->shares.back().rank != share.rank) set->shares.push_back({share.rank, gpu, 0});
      ++set->shares.back().gpus;
    }
  if (shares.size() == 1) sets.resize(1);
  std::vector<SharedSet> kinds;
  for (SharedSet& set : sets) {
    const auto is_alike = [&](const SharedSet& known) {
      return std::equal(known.shares.begin(), known.shares.end(), set.shares.begin(), set.shares.end(),
                        [](const RankShare& a, const RankShare& b) { return a.rank == b.rank && a.gpus == b.gpus; });
    };
    if (std::none_of(kinds.begin(), kinds.end(), is_alike)) kinds.push_back(std::move(set));
  }
  return kinds;
}

std::string RankPlaces::prefix(std::int64_t machine) const {
  if (ranks_ == 1) return "";
  const std::vector<RankShare> shares = on(machine);
  if (shares.size() == 1) return fmt::format("rank {} ", shares.front().rank);
  return fmt::format("ranks {}-{} ", shares.front().rank, shares.back().rank);
}

}  // namespace spillway::sim
