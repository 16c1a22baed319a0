// Text of files on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

// Each control character of UTF-8 but tab and newline becomes '?', as does each lone byte that an 8-bit terminal takes
// for one: a terminal obeys them. O(n).
[[nodiscard]] std::string terminal_text(std::string_view text);

}  // namespace spillway
