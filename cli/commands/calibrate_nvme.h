// spillway calibrate nvme
#pragma once

#include <string>

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_calibrate_nvme(Command& group, Context& context);

// Today as ISO 8601, in UTC.
std::string today();

}  // namespace spillway::cli
