// spillway calibrate pcie
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_calibrate_pcie(Command& group, Context& context);

}  // namespace spillway::cli
