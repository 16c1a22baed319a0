// Text of files in a Markdown document.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

// On one line, so that it shows as it is, also in a table's cell: no HTML, no link and no bar comes of it. Emphasis and
// code are left to work. O(n).
[[nodiscard]] std::string markdown_text(std::string_view text);

}  // namespace spillway
