// A cell of a CSV file (RFC 4180).
#pragma once

#include <string>
#include <string_view>

namespace spillway {

// In quotes where it must be. A text that a spreadsheet would take for a formula (it begins with a tab or a carriage
// return, or, behind any blanks, with =, +, - or @, and is neither a number nor a lone sign) gets an apostrophe in
// front.
[[nodiscard]] std::string csv_cell(std::string_view text);

}  // namespace spillway
