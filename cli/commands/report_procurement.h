// `spillway report procurement SCENARIO|SWEEP`.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_procurement_report(Command& group, Context& context);

}  // namespace spillway::cli
