// `spillway manual` and `spillway completion SHELL`, for packagers: what is printed is installed. Not among --help's
// commands.
#pragma once

namespace spillway::cli {

class Command;
struct Context;

// After all other commands, which the two describe. `manual --format json` is the table of commands and options.
void add_manual_commands(Command& app, const Context& context);

}  // namespace spillway::cli
