// A cell of a CSV file (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace spillway {

// In quotes where it must be. A text that a spreadsheet would take for a formula gets an apostrophe in front. It
// begins with a tab or a carriage return, or, behind any blanks, with =, +, - or @. A number or a lone sign is none.
[[nodiscard]] std::string csv_cell(std::string_view text);

}  // namespace spillway
