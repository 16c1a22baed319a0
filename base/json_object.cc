#include "base/json_object.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "base/json_error.h"

namespace spillway {

using Json = nlohmann::json;

JsonObject::JsonObject(const Json& json, std::string file, std::string place, std::string description)
    : json_(json), file_(std::move(file)), place_(std::move(place)), description_(std::move(description)) {
  if (!json_.is_object()) fail("", "not an object", "write {...} with the keys of " + description_);
}

void JsonObject::fail(const std::string& key, const std::string& cause, const std::string& remedy) const {
  throw InputError(file_, place_ + "/" + key, cause, remedy);
}

const Json* JsonObject::take(const char* key) {
  taken_.emplace_back(key);
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

const Json& JsonObject::need(const char* key) {
  const Json* value = take(key);
  if (value == nullptr) fail(key, "missing", "add it; " + description_ + " describes it");
  return *value;
}

std::int64_t JsonObject::integer(const char* key, std::int64_t low, std::int64_t high) {
  const Json& value = need(key);
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high)) &&
                    value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
  if (!fits) fail(key, "not a whole number in range", fmt::format("give {} .. {}", low, high));
  return value.get<std::int64_t>();
}

std::int64_t JsonObject::integer_or(const char* key, std::int64_t low, std::int64_t high, std::int64_t fallback) {
  return take(key) == nullptr ? fallback : integer(key, low, high);
}

std::string JsonObject::text(const char* key) {
  const Json& value = need(key);
  if (!value.is_string()) fail(key, "not a text", "write it in quotes");
  return value.get<std::string>();
}

bool JsonObject::flag(const char* key, bool fallback) {
  const Json* value = take(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "neither true nor false", "write true or false");
  return value->get<bool>();
}

double JsonObject::number_or(const char* key, double low, double below, double fallback) {
  const Json* value = take(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !(value->get<double>() >= low && value->get<double>() < below))
    fail(key, fmt::format("not a number in [{}, {})", low, below), "correct it");
  return value->get<double>();
}

std::size_t JsonObject::choice_index(const char* key, std::initializer_list<const char*> choices) {
  const std::string chosen = text(key);
  std::string all;
  std::size_t index = 0;
  for (const char* name : choices) {
    if (chosen == name) return index;
    all += (index++ == 0 ? "" : ", ") + std::string(name);
  }
  fail(key, fmt::format("unknown value \"{}\"", chosen), "use one of " + all);
}

void JsonObject::finish() const {
  for (const auto& [key, value] : json_.items()) {
    if (std::find(taken_.begin(), taken_.end(), key) == taken_.end())
      fail(key, "unknown key", "remove it or correct its spelling; " + description_ + " lists the keys");
  }
}

Json parse_json(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw json_error(file, error, "correct the syntax there");
  }
}

}  // namespace spillway
