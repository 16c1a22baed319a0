// A sweep's answer as a document for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planners/sweep/sweep_run.h"

namespace spillway {

// Everything of the outcome, rows in grid order. "schema": "spillway.sweep".
nlohmann::ordered_json sweep_json(const SweepFile& file, const SweepOutcome& outcome);

}  // namespace spillway
