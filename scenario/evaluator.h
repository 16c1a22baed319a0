// Evaluator: the one way from a loaded scenario, with parts of a plan in place of what it says, to a Result. Commands,
// studies, reports, the window and validation ask it, so that the same question gets the same answer everywhere; for
// planners it is the Replayer they are handed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "planners/replayer.h"
#include "scenario/reserve.h"
#include "scenario/scenario_run.h"

namespace spillway::scenario {

class Evaluator final : public PlainReplayer {
 public:
  // Kept by reference: `loaded` must outlive it.
  explicit Evaluator(const LoadedScenario& loaded, Shortage shortage = Shortage::found);

  // As the scenario says: under its plan or its techniques. Asked again, it is not run again. Throws InputError as the
  // technique does.
  const ScenarioRun& run() const;
  // The same, for who keeps it: the evaluator forgets it.
  ScenarioRun take_run();
  // With the plan's parts on top; asked again for an equal plan, it is not run again. Its order applies to the
  // scenario's trace as loaded. Throws InputError for a plan of another trace, and for one with a schedule, which a
  // step is generated with (load()).
  const ScenarioRun& run(const Plan& plan) const;

 private:
  const LoadedScenario& loaded_;
  Shortage shortage_;
  mutable std::map<std::uint64_t, std::unique_ptr<ScenarioRun>> known_;  // by digest of the plan; 0: none
};

// Sentence on a technique without effect: it moves nothing, or the peak is no lower for it. Empty: it lowers the peak,
// or nobody can tell.
std::string saves_nothing(const OffloadResult& moved, const MemoryResult& memory);

// The scenario on another machine or with other options, its techniques planned again there: what-ifs.
Result run_on(const LoadedScenario& loaded, const HardwareProfile& hardware, const ReplayOptions& options);

}  // namespace spillway::scenario
