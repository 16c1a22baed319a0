// A Result as JSON, table and CSV.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/options/context.h"
#include "cli/output/table.h"
#include "scenario/scenario_run.h"
#include "sim/replay/result.h"
#include "studies/offload/result_figures.h"

namespace spillway::cli {

// "low", "high": measured over predicted, in 80 % of steps like it; null where not known. "basis": of what, or why not.
nlohmann::ordered_json range_json(const FigureRange& range);
// The document of `run --format json`; keys are a contract (docs/internals/guide.md).
nlohmann::ordered_json result_json(const Result& result);
nlohmann::ordered_json reserve_json(const Reserve& reserve);
// The details that run_page() leaves out, in full digits: memory by phase and layer, the critical path, every step.
std::string result_details(const Result& result);
// A warning if it is tight or unknown.
void warn_of_verdict(const Context& context, const Result& result);
// "fits", "verdict"; "why_unknown" where it is.
void put_verdict(nlohmann::ordered_json& document, const Result& result);
// The code of a question whether it fits: no also where the drives refuse; not known where its record of memory is in
// doubt. A record without usable memory, or without a limit, is asked for its time: done.
ExitCode exit_code_of(const Result& result);
// One row, the headline figures.
Table result_row(const Result& result);
// Figure by figure: A, B, change; those that are nothing in both if `whole`.
Table comparison(const Result& a, const Result& b, bool whole);
nlohmann::ordered_json comparison_json(const Result& a, const Result& b);

}  // namespace spillway::cli
