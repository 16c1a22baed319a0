// `spillway fit`: ranked ways to make a step fit.
#pragma once

#include "cli/options/command_options.h"
#include "cli/options/context.h"

namespace spillway::cli {

void add_fit_command(Command& app, Context& context);

}  // namespace spillway::cli
