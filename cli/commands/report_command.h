// spillway report ssd|pcie: what a scenario asks of drives and links, as a page, a spreadsheet or a table.
#pragma once

#include "cli/options/context.h"

namespace CLI {
class App;
}

namespace spillway::cli {

void add_report_commands(CLI::App& app, Context& context);

}  // namespace spillway::cli
