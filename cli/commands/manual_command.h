// `spillway manual` and `spillway completion SHELL`, for packagers: what is printed is installed. Not among --help's
// commands.
#pragma once

namespace CLI {
class App;
}

namespace spillway::cli {

// After all other commands, which the two describe.
void add_manual_commands(CLI::App& app);

}  // namespace spillway::cli
