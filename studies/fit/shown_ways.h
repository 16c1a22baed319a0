// From all ways that were tried to the few that differ: what people are shown, each other one folded under the shown
// one that it resembles.
//
//   tried --> what fits or is tight --> idle parts folded --> best of each class --> dominated ones folded --> 5 to 9
//
// A class is a set of memory mechanisms within a group (who can run it, and whether it trains alike). Layout, ZeRO
// stage and micro-batch are coordinates of a class, kernels of loss and optimizer are minor: they make no class.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "studies/fit/fit_rank.h"
#include "studies/fit/fit_search.h"

namespace spillway::studies {

FitGroup group_of(const FitWay& way);

struct FoldedWay {
  std::size_t way = 0;      // of FitOutcome::ways
  std::string_view reason;  // "moves nothing more", "alike", "no better", "tight"
};
struct ShownWay {
  std::size_t way = 0;
  std::vector<FoldedWay> folded;
};

// In the order of ranks; groups stay together unless other numerics are ranked among the same training. Each way that
// fits or is tight is shown or folded, once. If none does, the three nearest are shown. The best way is the first.
// Four ways fold only under one of their class with a step within a tenth of theirs. They are the one with fewest
// edits, the one with most room, the best that leaves the host alone, and the best plain one. A plain way is no worse
// than one that takes code besides. The next with room stays beside a best one that leaves_little(). The last of more
// than nine are folded, and the best of each group stays.
std::vector<ShownWay> shown_ways(const FitOutcome& outcome);
// The best plain way that trains alike and keeps the reserve, of FitOutcome::ways; none: no such way is known.
std::optional<std::size_t> best_plain(const FitOutcome& outcome);

}  // namespace spillway::studies
