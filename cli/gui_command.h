// Command: gui.
#pragma once

#include "cli/context.h"

namespace spillway {

class Command;

// The window is a program of its own (spillway-gui), which this one turns into; so the command line links no Qt.
void add_gui_command(Command& app);

}  // namespace spillway
