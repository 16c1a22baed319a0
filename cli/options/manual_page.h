// The manual page, in the man macros of roff.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/field_rows.h"
#include "cli/options/option_table.h"

namespace spillway::cli {

// `keys`: of a scenario. No date, so that equal programs have equal pages.
std::string manual_page(std::span<const CommandEntry> table, std::span<const FieldRow> keys, std::string_view version);

}  // namespace spillway::cli
