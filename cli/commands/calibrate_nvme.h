// spillway calibrate nvme
#pragma once

#include <string>

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_calibrate_nvme(CLI::App& group, Context& context);

// Today as ISO 8601, in UTC.
std::string today();

}  // namespace spillway::cli
