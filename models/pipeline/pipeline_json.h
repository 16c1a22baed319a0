// Pipeline plans as JSON, both ways: what `spillway plan pipeline --format json` prints can be read again. The keys are
// in models/pipeline/pipeline_document.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::models {

// The plan, checked by check_plan(). Throws InputError naming file and place. O(size).
PipelinePlan read_plan_json(const std::string& text, const std::string& file);

// Adds its keys ("routes", not "placement") to an object, which is one.
void add_plan_json(nlohmann::ordered_json& object, const PipelinePlan& plan);

}  // namespace spillway::models
