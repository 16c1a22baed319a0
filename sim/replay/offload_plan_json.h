// An OffloadPlan as the part "fates" of a plan file:
//   {"technique": "mix", "digest": "0123456789abcdef", "store_workers": 6, "load_workers": 6, "in_flight_bytes": 0,
//    "paced_by_device": true, "route": "gpudirect", "drives": "",
//    "absences": [[tensor, "drive", store_after, leave_after, fetch_at, back_before, forwarded], ...],
//    "recomputations": [[before, [op, ...]], ...]}
// Ids are those of the trace; -1 stands for none.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/replay/offload_plan.h"

namespace spillway::sim {

nlohmann::ordered_json offload_plan_json(const OffloadPlan& plan);
// `file`, `part`: for messages. Throws InputError naming file, JSON pointer and cause. Whether the plan fits a trace is
// planned_trace()'s to say.
OffloadPlan read_offload_plan(const nlohmann::ordered_json& json, const std::string& file, const std::string& part);

}  // namespace spillway::sim
