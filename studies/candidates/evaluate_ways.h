// Ways to run one scenario, each replayed, side by side. `spillway techniques` shows them, `spillway fit` looks
// for the best.
//
//   scenario + edits of way 1 ---+--> step A ---+--> way 1: plan, replay --> row 1
//            + edits of way 2 ---+              +--> way 3: plan, replay --> row 3
//            + edits of way 3 ---+--> step B ------> way 2: plan, replay --> row 2
//
// Ways whose generated step is the same share it; those that may fold (scenario/brief_run.h) make their own, of few
// micro-batches. A row is what `spillway run` prints of the scenario with the same
// edits, to the last digit, and doesn't depend on threads or on which ways stand beside it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "studies/candidates/way_row.h"

namespace spillway::studies {

// A scenario before its edits, so that they may complete it.
struct WaysScenario {
  std::string text;    // JSON
  std::string path;    // stands for the file in messages
  std::string folder;  // paths in it are relative to this one
};
// Of a scenario file, or of a trace, which becomes the scenario that replays it as captured.
WaysScenario ways_scenario(const std::string& path);
// With edits made. Throws InputError as parse_scenario() does.
Scenario scenario_of(const WaysScenario& scenario, std::span<const std::string> settings);

struct WaysOptions {
  Detail detail = Detail::times;
  ReplayStore* store = nullptr;  // what replays are taken from and kept in
  // After each row, in no set order, one call at a time; false: no more are begun.
  std::function<bool(const WayRow& row, std::size_t done, std::size_t all)> progress;
};

// Row i is of ways[i]. An InputError of a way is its row's `error`. Stopped by `progress` or by the thread's StopScope:
// what was not finished has is_done false, nothing is thrown. Threads: oneTBB's. Memory: the steps in work.
std::vector<WayRow> evaluate_ways(const WaysScenario& scenario, std::span<const Way> ways,
                                  const WaysOptions& options = {});

}  // namespace spillway::studies
