// Outcomes of cases as panels of a scatter picture.
#pragma once

#include <vector>

#include "reports/pictures/scatter_svg.h"
#include "validation/published/case_run.h"

namespace spillway::validation {

// One panel for each kind of figure: times, rates, memory, layers, utilisation. Skipped cases are left out. O(cases).
std::vector<ScatterPanel> scatter_panels(const std::vector<CaseOutcome>& outcomes,
                                         const std::vector<CaseSummary>& summaries);

}  // namespace spillway::validation
