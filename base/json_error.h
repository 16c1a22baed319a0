// An error of the JSON parser, as a message to the user.
#pragma once

#include <exception>
#include <string>

#include "base/input_error.h"

namespace spillway {

// error: what nlohmann::json's parser threw: no JSON, with its byte, or a number beyond what a double takes.
InputError json_error(const std::string& file, const std::exception& error, const std::string& remedy);

}  // namespace spillway
