// The answer as JSON: what `--output answer.json` writes and the page carries.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "studies/answer/answer.h"

namespace spillway::studies {

// Text of a file as a page may show it: control characters and those that turn the direction of writing (U+202A to
// U+202E, U+2066 to U+2069, U+200E, U+200F, U+061C) are written "\u{202E}", bytes that are no UTF-8 U+FFFD. O(n).
std::string visible_text(std::string_view text);
// The same, and without its middle where it is longer than 200 characters.
std::string visible_name(std::string_view name);

// Sizes whole bytes (bins: of `bin_unit_bytes`), times whole nanoseconds. Where the whole is larger than `most_bytes`,
// first bins halve, then lanes, outlines and passes go, which `warnings` then say.
nlohmann::ordered_json answer_json(const Answer& answer, std::size_t most_bytes = std::size_t{3'000'000});

// JSON Schema of it.
std::string answer_schema();

}  // namespace spillway::studies
