// Rows of ways (studies/candidates/row.h) as JSON and as cells of a table: `spillway fit` and `spillway techniques`
// show the same figures under the same keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "studies/candidates/row.h"

namespace spillway::cli {

// {"model.recompute": "full", ...}: settings as --set takes them, values as JSON reads them.
nlohmann::ordered_json edits_json(const std::vector<std::string>& settings);
// name, edits, verdict, fits, step_time_ns, ...; figures of a way that can't be run are null, and "error" says why.
nlohmann::ordered_json row_json(const Row& row);

// "yes", "no", "unknown", "can't".
std::string row_verdict(const Row& row);
// "model.recompute=full offload.tier=host"; "-" for none.
std::string edits_text(const std::vector<std::string>& settings);

}  // namespace spillway::cli
