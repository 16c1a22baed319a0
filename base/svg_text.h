// Text and numbers of the SVG pictures: escaping, room taken, units, ticks. All independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace spillway {

// For element content and quoted attributes. Bytes XML does not allow (control characters, broken UTF-8) become U+FFFD.
std::string svg_escape(std::string_view text);

// Pixels the text takes in a sans-serif font of `size` pixels, rather too much than too little.
double text_width(std::string_view text, double size);
// The text, or as much of its beginning as fits before an ellipsis.
std::string fit_text(std::string_view text, double size, double room);
// Broken at spaces into lines that fit; a word too long for a line is shortened. At most `most_lines`, the last one
// then ends in an ellipsis.
std::vector<std::string> wrap_text(std::string_view text, double size, double room, std::size_t most_lines);

// "1.25 ms", "512.0 s"; "3.20 GiB", "512 B". Negative values keep their sign.
std::string duration_text(Picos time);
std::string bytes_text(Bytes bytes);

struct Tick {
  std::int64_t at = 0;  // ps or bytes
  std::string label;
};
// Ticks at multiples of 1, 2 or 5 x 10^k of the unit that suits the span, from 0 to at most `span`; about `target`
// of them, never more than 2.5 x target + 1. Nothing for span <= 0. The last label carries the unit, as do all of
// byte_ticks.
std::vector<Tick> time_ticks(Picos span, int target);
std::vector<Tick> byte_ticks(Bytes span, int target);

}  // namespace spillway
