// spillway report ssd|pcie: what a scenario asks of drives and links, as a page, a spreadsheet or a table.
#pragma once

#include "cli/options/context.h"

namespace spillway::cli {

class Command;

void add_report_commands(Command& app, Context& context);

}  // namespace spillway::cli
