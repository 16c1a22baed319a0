// Outcomes of cases as panels of a scatter picture.
#pragma once

#include <vector>

#include "validation/published/case_run.h"
#include "reports/pictures/scatter_svg.h"

namespace spillway {

// One panel for each kind of figure: times, rates, memory, layers, utilisation. Skipped cases are left out. O(cases).
std::vector<ScatterPanel> scatter_panels(const std::vector<CaseOutcome>& outcomes,
                                         const std::vector<CaseSummary>& summaries);

}  // namespace spillway
