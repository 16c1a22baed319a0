// The manual page, in the man macros of roff and in Markdown.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/field_rows.h"
#include "cli/options/option_table.h"

namespace spillway::cli {

// `keys`: of a scenario. No date, so that equal programs have equal pages.
std::string manual_page(std::span<const CommandEntry> table, std::span<const FieldRow> keys, std::string_view version);
// The page of one command ("fit") with those below it; empty if the table has no such command.
std::string manual_page(std::span<const CommandEntry> table, std::string_view command, std::string_view version);
// Every command as a section with a table of its options.
std::string manual_markdown(std::span<const CommandEntry> table);

}  // namespace spillway::cli
