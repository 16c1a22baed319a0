// spillway validate choices
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/context.h"
#include "validation/published/case_file.h"

namespace spillway::cli {

struct ValidateChoicesArguments {
  std::int64_t gpus = 512;    // set-ups of more are left out
  std::int64_t replays = 32;  // per set-up, more where these find nothing
  std::string output;         // CSV
};

// Exit code 1 where a published layout is faster than ours.
void validate_choices(const ValidateChoicesArguments& arguments, const std::vector<CaseFile>& files, Context& context);

}  // namespace spillway::cli
