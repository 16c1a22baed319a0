// Did you mean ...? The names nearest to a mistyped one, for error messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// Up to `limit` known names, nearest first, ties in the order given. A name is near if it contains the word or lies in
// it. So is one that begins with it, whatever separates their parts, or has an edit distance of at most a third of it.
// That distance is 2 at least, and one letter is kept. Case and what follows the first 128 letters don't count. The
// views are those of `known`. O(names x length^2).
std::vector<std::string_view> nearest_names(std::string_view word, std::span<const std::string_view> known,
                                            std::size_t limit = 3);

// "did you mean a, b or c?" from nearest_names; when nothing is near, `otherwise`, by default "use one of ..." with
// all known names.
std::string suggest(std::string_view word, std::span<const std::string_view> known, std::string_view otherwise = {});
std::string suggest(std::string_view word, const std::vector<std::string>& known, std::string_view otherwise = {});

}  // namespace spillway
