// Whether a sweep's screen can be trusted on its own space: points drawn at random are screened and replayed, all of
// them, and the two answers compared.
//
// A point is pruned wrongly when it is on the front of the sample's replays and the screen excluded it. The screen then
// called it invalid or unable, or ruled it out against another point of the sample, estimated or replayed. A sweep
// compares with more points, so it prunes more, but by the same rule: what is never wrong between two points of a
// sample is never wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "studies/sweep/sweep_run.h"

namespace spillway::studies {

struct SweepCheck {
  std::size_t sampled = 0;  // different points that no rule leaves out and the screen doesn't call invalid
  std::size_t invalid = 0;  // drawn besides, called invalid; replayed too
  std::size_t pruned = 0;   // of both
  std::size_t on_front = 0;
  struct Wrong {
    std::string label, why;
  };
  std::vector<Wrong> wrong;  // on the front, and pruned
  // Errors of the screen's step times and peaks, over all of the sample and over each value of each axis.
  struct Group {
    std::string name;         // "all", "zero 3"
    SweepError time, memory;  // of estimates
    SweepError above_bound;   // of points with a lower bound of the time alone: by how much replays lie above it
    std::int64_t below_bound = 0;
  };
  std::vector<Group> groups;
};

// Draws `count` points, `seed` says which; fewer where the space has not many more. Replays are taken from the store
// and kept there. `progress` as a sweep's. Throws InputError where no valid point was found in 1000 x count draws.
SweepCheck check_screen(const SweepFile& file, std::size_t count, std::uint64_t seed, SweepWorkers& workers,
                        SweepStore& store,
                        const std::function<bool(const std::string&, std::int64_t, std::int64_t)>& progress = {});

}  // namespace spillway::studies
