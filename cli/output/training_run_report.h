// A training run of so many steps, as text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/replay/result.h"
#include "studies/diagnosis/training_run.h"

namespace spillway::cli {

// result: of the step that the run repeats, for the range its time lies in.
std::string training_run_text(const studies::TrainingRun& run, const Result& result);
nlohmann::ordered_json training_run_json(const studies::TrainingRun& run);

}  // namespace spillway::cli
