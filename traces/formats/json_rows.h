// Streams a JSON object with large arrays of rows, one row in memory at a time.
//
//   {"schema": "1.1.0", "nodes": [ {...}, {...}, ... ]}
//     on_row("schema", "1.1.0")   on_row("nodes", {...})   on_row("nodes", {...}) ...
//
// An element of a top-level array is a row; any other top-level value is one row too. Includes
// nlohmann/json: for .cc files only.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/memory_limit.h"

namespace spillway::traces {

// Gets each row once; may move from it.
using JsonRowHandler = std::function<void(std::string_view key, nlohmann::json& row)>;

// `memory` counts what is made of the text. Throws InputError (place: byte offset) for broken or truncated JSON,
// nesting deeper than 64, or a root that is not an object. O(bytes).
void read_json_rows(std::string_view text, FileMemory& memory, const JsonRowHandler& on_row);

// Member of an object, or a null.
const nlohmann::json& json_member(const nlohmann::json& object, std::string_view key);
// Text of a string; empty for anything else.
std::string_view json_text(const nlohmann::json& value);

}  // namespace spillway::traces
