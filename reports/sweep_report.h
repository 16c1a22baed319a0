// A sweep's answer as a document for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "studies/sweep/sweep_run.h"

namespace spillway::reports {

// Everything of the outcome, rows in grid order. "schema": "spillway.sweep".
nlohmann::ordered_json sweep_json(const SweepFile& file, const SweepOutcome& outcome);
// One of its rows.
nlohmann::ordered_json sweep_row_json(const SweepRow& row);
// How many points were compared, and their absolute relative errors: median, 90th percentile, worst.
nlohmann::ordered_json sweep_error_json(const SweepError& error);

}  // namespace spillway::reports
