// JSON that people write by hand: with comments, // to the line's end and between /* and */.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace spillway {

// parse_document() (base/field_reader.h) of a text that may have comments. Throws InputError.
nlohmann::ordered_json parse_commented_document(std::string_view text, const std::string& file,
                                                const std::string& remedy);

}  // namespace spillway
