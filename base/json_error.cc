#include "base/json_error.h"

#include <nlohmann/json.hpp>

namespace spillway {

InputError json_error(const std::string& file, const std::exception& error, const std::string& remedy) {
  if (const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error))
    return {file, "byte " + std::to_string(syntax->byte), "not valid JSON", remedy};
  const std::string words = error.what();  // "[json.exception.out_of_range.406] number overflow parsing '1e999'"
  const std::size_t quote = words.find('\'');
  return {file, "", "a number is too large" + (quote == std::string::npos ? "" : ": " + words.substr(quote)),
          "numbers go up to 1.8e308; correct it there"};
}

}  // namespace spillway
