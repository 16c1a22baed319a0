// A training run in words, for every face alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "studies/diagnosis/training_run.h"

namespace spillway::studies {

// Subjects and their words: the duration first. result: of the step, for the range its time lies in.
std::vector<std::pair<std::string, std::string>> training_run_rows(const TrainingRun& run, const Result& result);

}  // namespace spillway::studies
