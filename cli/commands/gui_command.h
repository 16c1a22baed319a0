// Command: gui.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

// The window is a program of its own (spillway-gui), which this one turns into; so the command line links no Qt.
void add_gui_command(CLI::App& app);

}  // namespace spillway::cli
