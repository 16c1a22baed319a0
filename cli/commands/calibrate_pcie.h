// spillway calibrate pcie
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_calibrate_pcie(CLI::App& group, Context& context);

}  // namespace spillway::cli
