// A text of a file, as much of it as fits into a message.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

// A word longer than 240 letters loses its middle, and so does the whole where it is longer than `most` bytes then;
// "..." stands there. Whole characters of UTF-8 stay whole. O(n).
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most = 1000);

}  // namespace spillway
