// The answer of `spillway run` and `explain` for people: verdict and why, step, what limits it, what holds the memory.
// Lines are no wider than the terminal, at most 100 characters; figures have three significant digits. Details, in
// full digits, are result_details(), behind --verbose.
#pragma once

#include <string>

#include "studies/answer/answer.h"

namespace spillway::cli {

// Precondition: answer.now.
std::string run_page(const studies::Answer& answer);
// How a GPU is named, where none is known that the memory is to fit.
std::string which_gpu();
// The command to type next; `file`: the scenario or trace it is of.
std::string next_command(const Result& result, const std::string& file);

}  // namespace spillway::cli
