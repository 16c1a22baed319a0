// Candidates of one scenario, each replayed, side by side: the source of every study's rows.
//
//   scenario + edits of 1 ---+--> step A ---+--> 1: plan, replay --> row 1
//            + edits of 2 ---+              +--> 3: plan, replay --> row 3
//            + edits of 3 ---+--> step B ------> 2: plan, replay --> row 2
//
// Candidates with the same generated step share it; those that fold (scenario/brief_run.h) make their own, of few
// micro-batches. A row is what `spillway run` prints of the scenario with the same edits, to the last digit. It doesn't
// depend on threads or on which candidates stand beside it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenario/shared_machines.h"
#include "studies/candidates/row.h"

namespace spillway::studies {

// A scenario before its edits, so that they may complete it.
struct BaseScenario {
  std::string text;    // JSON
  std::string path;    // stands for the file in messages
  std::string folder;  // paths in it are relative to this one
};
// Base of a scenario file, or of a trace, which becomes the scenario that replays it as captured.
BaseScenario base_scenario(const std::string& path);
// With edits made. Throws InputError as parse_scenario() does.
Scenario scenario_of(const BaseScenario& scenario, std::span<const std::string> edits);

struct EvaluateOptions {
  Detail detail = Detail::times;
  ReplayStore* store = nullptr;                              // what replays are taken from and kept in
  const std::map<std::string, ModelSpec>* models = nullptr;  // of the caller's own, by the name a scenario gives
  // After each row, in no set order, one call at a time; false: no more are begun.
  std::function<bool(const Row& row, std::size_t done, std::size_t all)> progress;
};

// Row i is of candidates[i]. An InputError of a candidate is its row's `error`. Stopped by `progress` or by the
// thread's StopScope: what was not finished has is_done false, nothing is thrown. Threads: oneTBB's. Memory: the steps
// in work.
std::vector<Row> evaluate(const BaseScenario& scenario, std::span<const Candidate> candidates,
                          const EvaluateOptions& options = {});

// One, in this thread. Throws Cancelled. `machines`: those of its like.
Row evaluate_one(const BaseScenario& scenario, Candidate candidate, SharedMachines& machines,
                 const EvaluateOptions& options = {});
// With its edits made already; throws InputError as load() and its technique do. `step`: where others share it, the
// generated one, or the capture.
Row evaluate_one(const Scenario& scenario, Candidate candidate, SharedMachines& machines,
                 const EvaluateOptions& options, const std::function<const Trace&()>& step = {});

// Of a row's error: "/model/layers: there are none".
std::string told(const InputError& error);

}  // namespace spillway::studies
