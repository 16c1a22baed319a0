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
// The document of `run --format json`; keys are a contract (docs/guide.md).
nlohmann::ordered_json result_json(const Result& result);
nlohmann::ordered_json reserve_json(const Reserve& reserve);
// What a person wants first: verdict, step time, what binds, memory and its owners.
std::string result_text(const Result& result);
// Where it is tight or unknown: a warning.
void warn_of_verdict(const Context& context, const Result& result);
// One row, the headline figures.
Table result_row(const Result& result);
// Figure by figure: A, B, change.
Table comparison(const Result& a, const Result& b);
nlohmann::ordered_json comparison_json(const Result& a, const Result& b);

}  // namespace spillway::cli
