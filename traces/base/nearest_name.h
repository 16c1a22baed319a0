// Did you mean ...? The names nearest to a mistyped one, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// Up to `limit` candidates within an edit distance of a third of the word (at least 2), or containing it or
// contained in it, nearest first, ties in the order given. O(candidates x length^2).
std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& candidates,
                                       std::size_t limit = 3);
// "did you mean 'a' or 'b'?" from nearest_names; `otherwise` when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string_view otherwise);

}  // namespace spillway
