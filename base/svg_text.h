// Text of the SVG pictures: escaping and the room taken. All independent of the locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway {

// Bytes XML does not allow (control characters, broken UTF-8, U+FFFE and U+FFFF) become U+FFFD.
std::string xml_characters(std::string_view text);

// For element content and quoted attributes. Bytes XML does not allow become U+FFFD.
std::string svg_escape(std::string_view text);

// Pixels the text takes in a sans-serif font of `size` pixels, rather too much than too little.
double text_width(std::string_view text, double size);
// The text, or as much of its beginning as fits before an ellipsis.
std::string fit_text(std::string_view text, double size, double room);
// Broken at spaces into lines that fit; a word too long for a line is shortened. At most `most_lines`, the last one
// then ends in an ellipsis.
std::vector<std::string> wrap_text(std::string_view text, double size, double room, std::size_t most_lines);

}  // namespace spillway
