// The techniques side by side on one scenario: the plain step, each of them by itself, and what of them goes together
// (planners/technique/technique_table.h, compared_ways()). Each row is what `spillway run` says of the scenario with
// the row's settings.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "studies/candidates/evaluate.h"

namespace spillway::studies {

struct TechniqueRow {
  Row row;
  double against_plain = 0;  // step time over the plain step's; 0: one of them is not known
};

struct TechniqueComparison {
  std::vector<TechniqueRow> rows;  // the plain step, then as the table has them
  bool is_whole = true;            // false: stopped; rows not done are left out
};

// Candidates to compare: those named ("chronos+ssdtrain"), or all that the scenario's machine and pipeline have a use
// for; the plain step first. All settings that techniques make are taken out of the scenario before a candidate's own
// are put in. Throws InputError for an unknown name.
std::vector<Candidate> technique_candidates(const BaseScenario& scenario, std::span<const std::string> names = {});

// "the plain step is without the scenario's own model.recompute=full"; empty where nothing is taken out.
std::string taken_out(const BaseScenario& scenario);

TechniqueComparison compare_techniques(const BaseScenario& scenario, std::span<const Candidate> candidates,
                                       const EvaluateOptions& options = {});

}  // namespace spillway::studies
