// Predicted against measured, as a picture: one panel for each kind of figure, both axes logarithmic, a band of +-10 %
// around equality, one colour for each source.
#pragma once

#include <string>
#include <vector>

#include "validation/case_run.h"

namespace spillway {

// Cases used in a fit are drawn hollow; skipped ones are not drawn. `title` heads the picture. O(cases).
std::string scatter_svg(const std::string& title, const std::vector<CaseOutcome>& outcomes,
                        const std::vector<CaseSummary>& summaries);

}  // namespace spillway
