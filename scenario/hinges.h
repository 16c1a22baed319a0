// What the verdict of an imported scenario hangs on: keys that the launch leaves open, and flags that a scenario can't
// say. A figure of the launch's that is not known never becomes a yes, nor a no.
#pragma once

#include <string>
#include <vector>

#include "scenario/scenario_run.h"

namespace spillway::scenario {

// Clauses behind "fits" ("if micro_batch <= 3 at 8,192 tokens (not stated)"), or behind the verdict as replayed
// ("unless --x (launch.sh: line 12) needs more"); at most three. Empty: nothing can turn the verdict, which is firm:
//   open micro_batch   a no of 1 is firm where the sequence is stated
//   open sequence      a no of 512 tokens is firm
//   open precision     both ends are replayed; equal verdicts are firm
//   memory+            beside a yes, unless all that it may need is free
//   memory-            beside a no, unless the step recomputed in full with a chunked loss doesn't fit either
//   memory~, unknown   always
// `result`: as replayed. A few replays of the step with another value of an open key, folded where they can be.
std::vector<std::string> hinges_of(const LoadedScenario& loaded, const Result& result);

}  // namespace spillway::scenario
