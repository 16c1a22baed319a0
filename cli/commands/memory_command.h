// Commands: memory.
#pragma once

#include <string>

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The context must outlive the app's parse().
void add_memory_commands(Command& app, Context& context);

// Who holds what in a memory snapshot, and what made it run out: `memory FILE --explain`.
void explain_snapshot(const std::string& file, const std::string& output, Context& context);

}  // namespace spillway::cli
