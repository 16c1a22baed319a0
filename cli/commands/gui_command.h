// Command: gui.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

// The window is another program (spillway-gui), which this one turns into; so the command line links no Qt.
void add_gui_command(Command& app);

}  // namespace spillway::cli
