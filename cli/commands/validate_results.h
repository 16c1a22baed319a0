// spillway validate results
#pragma once

#include <string>

#include "cli/options/context.h"

namespace spillway::cli {

// Prints what a GPU campaign brought back to this folder. Exit code 1 where a step of it failed.
void validate_results(const std::string& folder, Context& context);

}  // namespace spillway::cli
