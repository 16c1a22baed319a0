#include "base/json_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/input_error.h"
#include "base/nearest_name.h"

namespace spillway {

std::string setting_text(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void JsonFields::fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
  throw InputError(name_, place.empty() ? "/" : place, cause, remedy);
}

void JsonFields::known(const Json& object, const std::string& place, Keys keys) const {
  if (!object.is_object()) fail(place, "expected an object", help_);
  for (const auto& [key, value] : object.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      fail(place + "/" + key, "unknown key '" + key + "'", suggest(key, keys));
}

std::string JsonFields::text(const Json& object, const std::string& place, const std::string& key) const {
  if (!object.contains(key)) return "";
  if (!object[key].is_string()) fail(place + "/" + key, "expected a text", "put it in quotes");
  return object[key].get<std::string>();
}

double JsonFields::number(const Json& object, const std::string& place, const std::string& key, double otherwise,
                          double least, double most) const {
  if (!object.contains(key)) return otherwise;
  const Json& value = object[key];
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most))
    fail(place + "/" + key, "expected a number from " + Json(least).dump() + " to " + Json(most).dump(), help_);
  return value.get<double>();
}

}  // namespace spillway
