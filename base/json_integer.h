#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace spillway {

// Integer of a JSON number, also one written as 3.0 or as a decimal string; nothing if there is none or it
// does not fit.
std::optional<std::int64_t> json_integer(const nlohmann::json& value);

}  // namespace spillway
