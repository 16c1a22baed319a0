// `spillway explain --technique NAME SCENARIO`: the least change of machine or step at which the technique pays.
#pragma once

#include <string>
#include <vector>

#include "cli/options/context.h"
#include "studies/payoff/payoff.h"

namespace spillway::cli {

struct ExplainTechniqueCall {
  studies::PayoffQuestion question;
  double saves_percent = 10, slower_percent = 2;
  double effort = 1;          // times the search's usual work
  std::string output, store;  // picture, replays
};

// `settings`: as from --set. Throws InputError, Cancelled.
void explain_technique(Context& context, const std::string& scenario, const std::vector<std::string>& settings,
                       ExplainTechniqueCall call);

}  // namespace spillway::cli
