// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <string>
#include <string_view>

namespace spillway::traces {

// Length of the longest prefix that is well-formed. O(n).
std::size_t valid_utf8_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }
// Each byte that does not belong to a well-formed character becomes U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace spillway::traces
