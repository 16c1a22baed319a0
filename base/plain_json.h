// The short way through JSON that our own files take: ASCII without escapes, numbers in range, no key twice. Tables of
// a hundred thousand numbers are read in a tenth of the full parser's time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace spillway {

// Whether `text` is such a document, nested no deeper than `deepest`; then `root` is what the full parser makes of it.
// Else the full parser has to decide, and `root` is unspecified.
bool parse_plain_json(std::string_view text, int deepest, nlohmann::ordered_json& root);

// The same of what stands before `key` in the outermost object: for what is decided by a long document's head. False
// where there is no such key as well.
bool parse_plain_json_before(std::string_view key, std::string_view text, int deepest, nlohmann::ordered_json& root);

// Empties a document of bounded depth from its leaves up: its destructor would first move every value to a stack, which
// takes as long as reading it did.
void clear_json(nlohmann::ordered_json& json);

}  // namespace spillway
