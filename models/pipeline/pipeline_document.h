// A pipeline plan's JSON before it is a plan: its fields (base/fields.h), and the plan it means.
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

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

struct PipelineDocument {
  enum class Placement : std::uint8_t { looped, zigzag, bidirectional };
  struct Copy {
    std::string op;
    std::optional<std::int64_t> after, peer;
  };
  struct Wait {
    std::int64_t operation = 0, copy = 0;
  };

  std::string name;
  std::int64_t stages = 0, micro_batches = 0, chunks = 1, slices = 1;
  std::optional<Placement> placement;
  std::vector<std::vector<PipelinePlan::Place>> routes;
  std::vector<std::int64_t> route_of;
  std::vector<std::vector<std::string>> orders;
  std::vector<std::vector<Copy>> copies;
  std::vector<std::vector<Wait>> waits;
};

// Other keys, as of the answer that holds a plan, are left alone.
void describe(PipelineDocument& document, FieldVisitor& visitor);
// With routes, not a placement.
PipelineDocument document_of(const PipelinePlan& plan);
// The plan, checked by check_plan(). Throws InputError naming file and place; `place` is the document's. O(size).
PipelinePlan plan_of(const PipelineDocument& document, const std::string& file, const std::string& place);

}  // namespace spillway::models
