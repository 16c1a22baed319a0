// `spillway import`: launch scripts and configurations of training frameworks to a scenario.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_import_command(Command& app, Context& context);

}  // namespace spillway::cli
