#include "hwprofiles/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "base/nearest_name.h"

namespace spillway::hwprofiles {
namespace {

using nlohmann::json;

std::optional<OriginKind> provenance_from(const std::string& name) {
  for (const OriginKind candidate :
       {OriginKind::measured, OriginKind::datasheet, OriginKind::fitted, OriginKind::assumed}) {
    if (name == provenance_name(candidate)) return candidate;
  }
  return std::nullopt;
}

std::string units_offered(Dimension dimension) {
  std::string text;
  for (const std::string& unit : units_of(dimension))
    text += (text.empty() ? "" : ", ") + (unit.empty() ? "none" : unit);
  return "use one of these units: " + text;
}

}  // namespace

JsonFieldReader::JsonFieldReader(const json& object, std::vector<ProfileProblem>& problems) : problems_(problems) {
  push(object, "");
  default_origin_.source = "not stated in the file";
  frames_.back().used = {"schema", "kind", "name", "title", "provenance", "source", "date"};
  default_origin_ = origin_of(object, "");
}

void JsonFieldReader::ignore(std::vector<std::string> keys) {
  for (std::string& key : keys) frames_.back().used.insert(std::move(key));
}

void JsonFieldReader::finish() {
  SPILLWAY_ASSERT(frames_.size() == 1);
  pop();
}

void JsonFieldReader::problem(const std::string& place, std::string cause, std::string remedy) {
  problems_.push_back({place, std::move(cause), std::move(remedy)});
}

void JsonFieldReader::push(const json& object, std::string place) {
  frames_.push_back({&object, std::move(place), {}});
}

void JsonFieldReader::pop() {
  const Frame& frame = frames_.back();
  const std::vector<std::string> known(frame.used.begin(), frame.used.end());
  if (frame.object->is_object()) check_keys(*frame.object, known, frame.place);
  frames_.pop_back();
}

void JsonFieldReader::check_keys(const json& object, const std::vector<std::string>& known, const std::string& place) {
  for (const auto& item : object.items()) {
    bool found = false;
    for (const std::string& key : known) found = found || key == item.key();
    if (!found) problem(place + "/" + item.key(), "unknown key", suggest(item.key(), known, "remove it"));
  }
}

const json* JsonFieldReader::take(std::string_view key) {
  Frame& frame = frames_.back();
  frame.used.emplace(key);
  if (!frame.object->is_object()) return nullptr;
  const auto found = frame.object->find(std::string(key));
  return found == frame.object->end() ? nullptr : &*found;
}

Origin JsonFieldReader::origin_of(const json& object, const std::string& place) {
  Origin origin = default_origin_;
  if (const auto it = object.find("provenance"); it != object.end()) {
    const auto provenance = it->is_string() ? provenance_from(it->get<std::string>()) : std::nullopt;
    if (provenance)
      origin.provenance = *provenance;
    else
      problem(place + "/provenance", "unknown provenance", "use measured, datasheet, fitted or assumed");
  }
  for (const auto& [key, member] : {std::pair{"source", &Origin::source}, std::pair{"date", &Origin::date}}) {
    const auto it = object.find(key);
    if (it == object.end()) continue;
    if (it->is_string())
      origin.*member = it->get<std::string>();
    else
      problem(place + "/" + key, "not text", "write it in quotes");
  }
  if (const auto it = object.find("spread"); it != object.end() && !place.empty()) {
    if (it->is_number() && it->get<double>() >= 0)
      origin.spread = it->get<double>();
    else
      problem(place + "/spread", "not a share of at least 0", "write half the interquartile range over the median");
  }
  return origin;
}

void JsonFieldReader::text(std::string_view key, std::string& value, bool required) {
  const json* found = take(key);
  if (found != nullptr && found->is_string()) {
    value = found->get<std::string>();
  } else if (found != nullptr) {
    problem(place_of(key), "not text", "write it in quotes");
  } else if (required) {
    problem(place_of(key), "missing", "add it");
  }
}

void JsonFieldReader::flag(std::string_view key, bool& value) {
  const json* found = take(key);
  if (found == nullptr) return;
  if (found->is_boolean())
    value = found->get<bool>();
  else
    problem(place_of(key), "not true or false", "write true or false");
}

void JsonFieldReader::choice(std::string_view key, std::size_t& index, const std::vector<std::string>& names) {
  const json* found = take(key);
  if (found == nullptr)
    return problem(place_of(key), "missing", "add one of: " + fmt::format("{}", fmt::join(names, ", ")));
  const std::string given = found->is_string() ? found->get<std::string>() : found->dump();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (found->is_string() && given == names[i]) {
      index = i;
      return;
    }
  }
  problem(place_of(key), "'" + given + "' is not known here", suggest(given, names));
}

bool JsonFieldReader::in_range(double value, const FieldInfo& info, const std::string& place) {
  if (std::isfinite(value) && value >= info.min && value <= info.max) return true;
  const PrintedQuantity given = print_quantity(value, info.dimension);
  const PrintedQuantity low = print_quantity(info.min, info.dimension), high = print_quantity(info.max, info.dimension);
  problem(place, fmt::format("{} {} is out of range", given.value, given.unit),
          fmt::format("give a value from {} {} to {} {}", low.value, low.unit, high.value, high.unit));
  return false;
}

bool JsonFieldReader::quantity(const json& leaf, const FieldInfo& info, const std::string& place, double& value,
                               Origin& origin) {
  origin = default_origin_;
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

void JsonFieldReader::number(const FieldInfo& info, Leaf& leaf) {
  const json* found = take(info.key);
  if (found == nullptr) {
    if (leaf.required()) problem(place_of(info.key), "missing", "add it, with a source or as an assumption");
    return;
  }
  double value = 0;
  Origin origin;
  if (quantity(*found, info, place_of(info.key), value, origin)) leaf.set(value, std::move(origin));
}

void JsonFieldReader::integer(const FieldInfo& info, std::int64_t& value) {
  const json* found = take(info.key);
  if (found == nullptr) return;
  double given = 0;
  Origin origin;
  if (quantity(*found, info, place_of(info.key), given, origin)) value = std::llround(given);
}

bool JsonFieldReader::axes(const json& object, const FieldInfo& y, Dimension x, const std::string& place, Axes& axes) {
  if (!object.is_object()) {
    problem(place, "not an object with points", R"(write {"x_unit": ..., "unit": ..., "points": [[x, y], ...]})");
    return false;
  }
  const std::string x_unit = object.value("x_unit", json("")).is_string() ? object.value("x_unit", "") : "?";
  const std::string y_unit = object.value("unit", json("")).is_string() ? object.value("unit", "") : "?";
  axes.x = unit_factor(x, x_unit);
  axes.y = unit_factor(y.dimension, y_unit);
  if (axes.x == 0) problem(place + "/x_unit", "unit '" + x_unit + "' does not fit here", units_offered(x));
  if (axes.y == 0) problem(place + "/unit", "unit '" + y_unit + "' does not fit here", units_offered(y.dimension));
  const json scale = object.value("scale", json("log"));
  if (scale != "log" && scale != "linear") problem(place + "/scale", "unknown scale", "use log or linear");
  axes.scale = scale == "linear" ? Curve::Scale::linear : Curve::Scale::log;
  return axes.x != 0 && axes.y != 0;
}

bool JsonFieldReader::points(const json& object, const FieldInfo& y, double x_factor, double y_factor,
                             Curve::Scale scale, const std::string& place, Curve& curve) {
  const auto list = object.find("points");
  if (list == object.end() || !list->is_array()) {
    problem(place + "/points", "missing or not a list", "give [[x, y], ...]");
    return false;
  }
  std::vector<CurvePoint> points;
  for (const json& point : *list) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number()) {
      problem(fmt::format("{}/points/{}", place, points.size()), "not a pair of numbers", "give [x, y]");
      return false;
    }
    points.push_back({point[0].get<double>() * x_factor, point[1].get<double>() * y_factor});
    if (!in_range(points.back().y, y, fmt::format("{}/points/{}", place, points.size() - 1))) return false;
  }
  try {
    curve = Curve(std::move(points), scale);
  } catch (const InputError& error) {
    problem(place + "/points", error.place() + ": " + error.cause(), error.remedy());
    return false;
  }
  return true;
}

void JsonFieldReader::curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) {
  const json* found = take(y.key);
  if (found == nullptr) return;
  const std::string place = place_of(y.key);
  Axes scales;
  Curve read;
  if (!axes(*found, y, x, place, scales)) return;
  check_keys(*found, {"x_unit", "unit", "scale", "points", "provenance", "source", "date", "spread", "note"}, place);
  if (!points(*found, y, scales.x, scales.y, scales.scale, place, read)) return;
  curve = Sourced<Curve>{std::move(read), origin_of(*found, place)};
}

void JsonFieldReader::family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) {
  const json* found = take(y.key);
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
  for (const json& item : *list) {
    const std::string here = fmt::format("{}/members/{}", place, members.size());
    const auto at = item.is_object() ? item.find(std::string(parameter)) : item.end();
    if (!item.is_object() || at == item.end() || !at->is_number()) {
      return problem(here, "no " + std::string(parameter), "add it as a number");
    }
    check_keys(item, {std::string(parameter), "points"}, here);
    Curve read;
    if (!points(item, y, scales.x, scales.y, scales.scale, here, read)) return;
    members.push_back({at->get<double>(), std::move(read)});
  }
  try {
    family = Sourced<CurveFamily>{CurveFamily(std::move(members)), origin_of(*found, place)};
  } catch (const InputError& error) {
    problem(place + "/members", error.place() + ": " + error.cause(), error.remedy());
  }
}

bool JsonFieldReader::begin_group(std::string_view key, bool required) {
  const json* found = take(key);
  if (found == nullptr) {
    if (required) problem(place_of(key), "missing", "add the object");
    return false;
  }
  if (!found->is_object()) {
    problem(place_of(key), "not an object", "write { ... }");
    return false;
  }
  push(*found, place_of(key));
  return true;
}

std::size_t JsonFieldReader::begin_list(std::string_view key, std::size_t) {
  static const json nothing = json::array();
  const json* found = take(key);
  if (found != nullptr && !found->is_array()) problem(place_of(key), "not a list", "write [ ... ]");
  const bool usable = found != nullptr && found->is_array();
  lists_.push_back({usable ? found : &nothing, place_of(key)});
  return lists_.back().array->size();
}

void JsonFieldReader::begin_element(std::size_t index) {
  const List& list = lists_.back();
  const std::string place = list.place + "/" + std::to_string(index);
  if (!(*list.array)[index].is_object()) problem(place, "not an object", "write { ... }");
  push((*list.array)[index], place);
}

}  // namespace spillway::hwprofiles
