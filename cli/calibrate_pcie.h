// spillway calibrate pcie
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

void add_calibrate_pcie(Command& group, Context& context);

}  // namespace spillway
