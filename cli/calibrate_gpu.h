// spillway calibrate gpu
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

void add_calibrate_gpu(Command& group, Context& context);

}  // namespace spillway
