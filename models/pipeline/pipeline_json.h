// Pipeline plans as JSON, both ways: what `spillway plan pipeline --format json` prints can be read again.
//
//   {"stages": 2, "micro_batches": 2, "chunks": 1, "slices": 1,
//    "placement": "looped",                       looped, zigzag or bidirectional; or
//    "routes": [[[0, 0], [1, 0]]],                  [device, chunk] of each position, route by route
//    "route_of": [0, 0],                            by micro-batch; left out: all on route 0
//    "orders": [["F0", "F1", "BW0", "BW1"], ...],   by device
//    "copies": [[{"op": "O0", "after": 0, "peer": 1}, ...], ...],   left out: none; "peer" left out: the host
//    "waits": [[[2, 1], ...], ...]}                 by device: operation 2 waits for copy 1; left out: none
//
// An operation is its kind (F, BW, B, W, R; O and L among copies), micro-batch, "/slice" and ".chunk", both left out
// when 0: "B3", "F12.1", "F0/2.1"; a pair is "F4.0&B1.1".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

// The plan, checked by check_plan(). Throws InputError naming file and place. O(size).
PipelinePlan read_plan_json(const std::string& text, const std::string& file);

// Adds the keys above ("routes", not "placement") to an object.
void add_plan_json(nlohmann::ordered_json& object, const PipelinePlan& plan);

}  // namespace spillway::models
