// `spillway report procurement SCENARIO|SWEEP`.
#pragma once

#include <CLI/App.hpp>

#include "cli/options/context.h"

namespace spillway::cli {

void add_procurement_report(CLI::App& group, Context& context);

}  // namespace spillway::cli
