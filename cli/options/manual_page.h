// The manual page, in the man macros of roff.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/options/option_table.h"

namespace spillway::cli {

// No date, so that equal programs have equal pages.
std::string manual_page(std::span<const CommandEntry> table, std::string_view version);

}  // namespace spillway::cli
