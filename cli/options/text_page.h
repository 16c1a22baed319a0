// Text for people in a terminal: lines no wider than it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::cli {

// Width of the terminal that standard output is, else what COLUMNS says, between 40 and 100; 80 where nothing does.
std::size_t page_width();
// The same for tables: 100 where nothing says it.
std::size_t table_width();

// In lines of at most `width` characters, broken at spaces; those behind the first begin with `indent` spaces, the
// first as the text does. A word that is wider stands alone. Counts UTF-8 characters.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);
// The same as text, with a newline behind each line.
std::string paragraph(std::string_view text, std::size_t width, std::size_t indent = 0);
// Each line of a text so.
std::string paragraphs(std::string_view text, std::size_t width, std::size_t indent = 0);

// How many characters a terminal shows of it.
std::size_t shown_width(std::string_view text);
// At most `width` characters: of a longer text its beginning, or its end, with "..." for the rest. Whole characters of
// UTF-8 stay whole. Precondition: width > 3.
std::string elided(std::string_view text, std::size_t width, bool keeps_end);

}  // namespace spillway::cli
