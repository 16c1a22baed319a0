#include "hwprofiles/profile_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "hwprofiles/profile_schema.h"

namespace spillway::hwprofiles {
namespace {

std::string units_offered(Dimension dimension) {
  std::string text;
  for (const std::string& unit : units_of(dimension))
    text += (text.empty() ? "" : ", ") + (unit.empty() ? "none" : unit);
  return "use one of these units: " + text;
}

}  // namespace

ProfileReader::ProfileReader(const Json& object, const ValueHomes& homes, std::vector<FieldProblem>& problems)
    : FieldReader(object, problems), homes_(homes) {
  ignore({"$schema", "schema", "kind", "name", "title", "base", "provenance", "source", "date"});
}

Origin ProfileReader::origin_of(const Json& object, const std::string& place) {
  Origin origin = homes_.of(place).origin;
  if (const auto it = object.find("provenance"); it != object.end()) {
    const auto provenance = it->is_string() ? provenance_words().find(it->get<std::string>()) : std::nullopt;
    if (provenance)
      origin.provenance = static_cast<OriginKind>(*provenance);
    else
      problem(place + "/provenance", "unknown provenance", "use measured, datasheet, fitted or assumed");
  }
  for (const auto& [key, member] : {std::pair{"source", &Origin::source}, std::pair{"date", &Origin::date}}) {
    const auto it = object.find(key);
    if (it == object.end()) continue;
    if (it->is_string())
      origin.*member = it->get<std::string>();
    else
      problem(place + "/" + key, "expected a text", "put it in quotes");
  }
  if (const auto it = object.find("spread"); it != object.end()) {
    if (it->is_number() && it->get<double>() >= 0)
      origin.spread = it->get<double>();
    else
      problem(place + "/spread", "not a share of at least 0", "write half the interquartile range over the median");
  }
  return origin;
}

bool ProfileReader::in_range(double value, const FieldInfo& info, const std::string& place) {
  if (std::isfinite(value) && value >= info.min && value <= info.max) return true;
  const PrintedQuantity given = print_quantity(value, info.dimension);
  const PrintedQuantity low = print_quantity(info.min, info.dimension), high = print_quantity(info.max, info.dimension);
  problem(place, fmt::format("{} {} is out of range", given.value, given.unit),
          fmt::format("give a value from {} {} to {} {}", low.value, low.unit, high.value, high.unit));
  return false;
}

bool ProfileReader::measured(const Json& leaf, const FieldInfo& info, const std::string& place, double& value,
                             Origin& origin) {
  origin = homes_.of(place).origin;
  if (leaf.is_string() || leaf.is_number()) {
    try {
      value = parse_quantity(leaf.is_string() ? leaf.get<std::string>() : leaf.dump(), info.dimension).value;
    } catch (const InputError& error) {
      problem(place, error.cause(), error.remedy());
      return false;
    }
  } else if (leaf.is_object()) {
    check_keys(leaf, {"value", "unit", "provenance", "source", "date", "spread", "note"}, place);
    origin = origin_of(leaf, place);
    const auto number = leaf.find("value");
    if (number == leaf.end() || !number->is_number()) {
      problem(place + "/value", number == leaf.end() ? "missing" : "not a number", "give a number");
      return false;
    }
    const auto unit = leaf.find("unit");
    const std::string name = unit != leaf.end() && unit->is_string() ? unit->get<std::string>() : "";
    const double factor = unit_factor(info.dimension, name);
    if (factor == 0) {
      problem(place + "/unit", name.empty() ? "the unit is missing" : "unit '" + name + "' does not fit here",
              units_offered(info.dimension));
      return false;
    }
    value = number->get<double>() * factor;
  } else {
    problem(place, "not a number with a unit", R"(write "80 GiB" or {"value": 80, "unit": "GiB", ...})");
    return false;
  }
  if (info.dimension == Dimension::count && value != std::floor(value)) {
    problem(place, fmt::format("{} is not a whole number", value), "give a whole number");
    return false;
  }
  return in_range(value, info, place);
}

void ProfileReader::quantity(const FieldInfo& info, Leaf& leaf) {
  const Json* found = take(info);
  if (found == nullptr) {
    if (leaf.required()) problem(place_of(info.key), "missing", "add it, with a source or as an assumption");
    return;
  }
  double value = 0;
  Origin origin;
  if (measured(*found, info, place_of(info.key), value, origin)) leaf.set(value, std::move(origin));
}

bool ProfileReader::axes(const Json& object, const FieldInfo& y, Dimension x, const std::string& place, Axes& axes) {
  if (!object.is_object()) {
    problem(place, "not an object with points", R"(write {"x_unit": ..., "unit": ..., "points": [[x, y], ...]})");
    return false;
  }
  const auto unit_at = [&](const char* key) -> std::string {
    const auto found = object.find(key);
    if (found == object.end()) return "";
    return found->is_string() ? found->get<std::string>() : "?";
  };
  const std::string x_unit = unit_at("x_unit"), y_unit = unit_at("unit");
  axes.x = unit_factor(x, x_unit);
  axes.y = unit_factor(y.dimension, y_unit);
  if (axes.x == 0) problem(place + "/x_unit", "unit '" + x_unit + "' does not fit here", units_offered(x));
  if (axes.y == 0) problem(place + "/unit", "unit '" + y_unit + "' does not fit here", units_offered(y.dimension));
  if (const auto scale = object.find("scale"); scale != object.end()) {
    if (*scale != "log" && *scale != "linear") problem(place + "/scale", "unknown scale", "use log or linear");
    if (*scale == "linear") axes.scale = Curve::Scale::linear;
  }
  return axes.x != 0 && axes.y != 0;
}

bool ProfileReader::points(const Json& object, const FieldInfo& y, const Axes& axes, const std::string& place,
                           Curve& curve) {
  const auto list = object.find("points");
  if (list == object.end() || !list->is_array()) {
    problem(place + "/points", "missing or not a list", "give [[x, y], ...]");
    return false;
  }
  std::vector<CurvePoint> points;
  for (const Json& point : *list) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number()) {
      problem(fmt::format("{}/points/{}", place, points.size()), "not a pair of numbers", "give [x, y]");
      return false;
    }
    points.push_back({point[0].get<double>() * axes.x, point[1].get<double>() * axes.y});
    if (!in_range(points.back().y, y, fmt::format("{}/points/{}", place, points.size() - 1))) return false;
  }
  try {
    curve = Curve(std::move(points), axes.scale);
  } catch (const InputError& error) {
    problem(place + "/points", error.place() + ": " + error.cause(), error.remedy());
    return false;
  }
  return true;
}

void ProfileReader::curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) {
  const Json* found = take(y);
  if (found == nullptr) return;
  const std::string place = place_of(y.key);
  Axes scales;
  Curve read;
  if (!axes(*found, y, x, place, scales)) return;
  check_keys(*found, {"x_unit", "unit", "scale", "points", "provenance", "source", "date", "spread", "note"}, place);
  if (!points(*found, y, scales, place, read)) return;
  curve = Sourced<Curve>{std::move(read), origin_of(*found, place)};
}

void ProfileReader::family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) {
  const Json* found = take(y);
  if (found == nullptr) return;
  const std::string place = place_of(y.key);
  Axes scales;
  if (!axes(*found, y, x, place, scales)) return;
  check_keys(*found, {"x_unit", "unit", "scale", "members", "provenance", "source", "date", "spread", "note"}, place);
  const auto list = found->find("members");
  if (list == found->end() || !list->is_array()) {
    return problem(place + "/members", "missing or not a list", "give the curves, one per " + std::string(parameter));
  }
  std::vector<CurveFamily::Member> members;
  for (const Json& item : *list) {
    const std::string here = fmt::format("{}/members/{}", place, members.size());
    const auto at = item.is_object() ? item.find(parameter) : item.end();
    if (!item.is_object() || at == item.end() || !at->is_number()) {
      return problem(here, "no " + std::string(parameter), "add it as a number");
    }
    check_keys(item, {parameter, "points"}, here);
    Curve read;
    if (!points(item, y, scales, here, read)) return;
    members.push_back({at->get<double>(), std::move(read)});
  }
  try {
    family = Sourced<CurveFamily>{CurveFamily(std::move(members)), origin_of(*found, place)};
  } catch (const InputError& error) {
    problem(place + "/members", error.place() + ": " + error.cause(), error.remedy());
  }
}

}  // namespace spillway::hwprofiles
