#include "hwprofiles/profile_base.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

using Json = nlohmann::ordered_json;

// A number with its origin or a curve, which is replaced whole.
bool is_value(const Json& object) {
  constexpr std::array keys = {"value", "points", "members"};
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return object.find(key) != object.end(); });
}

bool is_group(const Json& value) { return value.is_object() && !is_value(value); }

bool lies_in(std::string_view place, std::string_view outer) {
  return place.starts_with(outer) && (place.size() == outer.size() || place[outer.size()] == '/');
}

void lay_over(Json& base, const Json& own, const std::string& place, std::vector<std::string>& places) {
  for (const auto& [key, value] : own.items()) {
    const std::string here = place + "/" + key;
    const auto found = base.find(key);
    if (found != base.end() && is_group(*found) && is_group(value)) {
      lay_over(*found, value, here, places);
      continue;
    }
    places.push_back(here);
    base[key] = value;
  }
}

}  // namespace

ValueHomes::ValueHomes(const ValueHomes& base, Home home, std::vector<std::string> places) : homes_(base.homes_) {
  for (std::string& place : places) stated_.push_back({std::move(place), homes_.size()});
  stated_.insert(stated_.end(), base.stated_.begin(), base.stated_.end());
  homes_.push_back(std::move(home));
}

const ValueHomes::Home& ValueHomes::of(const std::string& place) const {
  SPILLWAY_ASSERT(!homes_.empty());
  for (const Stated& stated : stated_)
    if (lies_in(place, stated.place)) return homes_[stated.home];
  return homes_.front();
}

Json laid_over(const Json& base, const Json& own, std::vector<std::string>& places) {
  Json result = base;
  for (const char* key : {"$schema", "provenance", "source", "date", "base"}) result.erase(key);
  lay_over(result, own, "", places);
  return result;
}

}  // namespace spillway::hwprofiles
