// spillway calibrate gpu
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_calibrate_gpu(CLI::App& group, Context& context);

}  // namespace spillway::cli
