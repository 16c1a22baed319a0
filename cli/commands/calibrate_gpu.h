// spillway calibrate gpu
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_calibrate_gpu(Command& group, Context& context);

}  // namespace spillway::cli
