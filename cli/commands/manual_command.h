// `spillway manual` and `spillway completion SHELL`, for packagers: what is printed is installed. Not among --help's
// commands.
#pragma once

namespace spillway::cli {

class Command;

// After all other commands, which the two describe.
void add_manual_commands(Command& app);

}  // namespace spillway::cli
