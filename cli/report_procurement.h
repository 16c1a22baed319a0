// `spillway report procurement SCENARIO|SWEEP`.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

void add_procurement_report(Command& group, Context& context);

}  // namespace spillway
