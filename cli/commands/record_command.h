// spillway record: captures an unmodified CUDA program.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_record_commands(CLI::App& app, Context& context);

}  // namespace spillway::cli
