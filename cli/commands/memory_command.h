// Commands: memory.
#pragma once

#include <string>

#include "cli/options/context.h"
#include "sim/replay/result.h"

namespace spillway::cli {

class Command;

// The context must outlive the app's parse().
void add_memory_commands(Command& app, Context& context);

// Who holds what in a memory snapshot, and what made it run out: `memory FILE --explain`. command: what was asked;
// judged: on the machine that the scenario or the settings name; null: they name none.
void explain_snapshot(const std::string& file, std::string command, const std::string& output, const Result* judged,
                      Context& context);

}  // namespace spillway::cli
