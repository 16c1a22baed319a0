// Conditions on the verdict of an imported scenario: keys that the launch leaves open, and flags that a scenario can't
// say. An unknown figure of the launch never becomes "fits" or "does not fit".
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

// Clauses behind "fits" ("if micro_batch <= 3 at 8,192 tokens (not stated)"), or behind the verdict as replayed
// ("unless --x (launch.sh: line 12) needs more"); at most three. Empty: nothing can turn the verdict, which is firm:
//   open micro_batch   firm if 1 does not fit and the sequence is stated
//   open sequence      firm if 512 tokens don't fit
//   open precision     both ends are replayed; equal verdicts are firm
//   memory+            if the step fits, unless all that it may need is free
//   memory-            if the step doesn't fit, unless it doesn't either recomputed in full with a chunked loss
//   memory~, unknown   always
// `result`: as replayed. A few replays of the step with another value of an open key, folded where they can be.
std::vector<std::string> hinges_of(const LoadedScenario& loaded, const Result& result);

}  // namespace spillway::scenario
