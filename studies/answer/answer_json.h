// The answer as JSON: what `--output answer.json` writes and the page carries.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "studies/answer/answer.h"

namespace spillway::studies {

// Text of a file as a page may show it. Control characters, U+2028, U+2029, U+FEFF and those that turn the direction of
// writing (U+202A to U+202E, U+2066 to U+2069, U+200E, U+200F, U+061C) become "\u{202E}". Tabs and line ends become
// spaces, bytes that are no UTF-8 U+FFFD. O(n).
std::string visible_text(std::string_view text);
// The same, and without its middle where it is longer than 200 characters.
std::string visible_name(std::string_view name);

// Sizes whole bytes (bins: of `bin_unit_bytes`), times whole nanoseconds. Over `most_bytes`, first bins get coarser,
// then lanes, outlines and passes go; `warnings` name each.
nlohmann::ordered_json answer_json(const Answer& answer, std::size_t most_bytes = std::size_t{3'000'000});

// JSON Schema of it.
std::string answer_schema();

}  // namespace spillway::studies
