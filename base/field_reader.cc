#include "base/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/commented_document.h"
#include "base/input_error.h"
#include "base/json_error.h"
#include "base/nearest_name.h"

namespace spillway {
namespace {

using Json = FieldReader::Json;
constexpr std::size_t deepest = 64;  // no document of ours goes deeper

// What the field is, as a remedy.
std::string told(const FieldInfo& info, std::string_view otherwise = "correct it") {
  return info.about.empty() ? std::string(otherwise) : fmt::format("{}: {}", info.key, info.about);
}

std::string shown(double bound) {
  return bound == std::floor(bound) && std::abs(bound) < 9e18 ? std::to_string(static_cast<std::int64_t>(bound))
                                                              : fmt::format("{}", bound);
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

FieldReader::FieldReader(const Json& object, std::vector<FieldProblem>& problems, std::string place)
    : problems_(problems) {
  push({&object, std::move(place)});
}

void FieldReader::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) frames_.back().used.emplace(key);
}

void FieldReader::finish() {
  SPILLWAY_ASSERT(frames_.size() == 1);
  pop();
}

void FieldReader::problem(const std::string& place, std::string cause, std::string remedy, int rank) {
  problems_.push_back({place, std::move(cause), std::move(remedy), rank});
}

std::string FieldReader::place_of(std::string_view key) const {
  const Frame& frame = frames_.back();
  if (frame.as_tuple) return frame.place + "/" + std::to_string(frame.next - 1);
  return key.empty() ? frame.place : frame.place + "/" + std::string(key);
}

void FieldReader::pop() {
  const Frame& frame = frames_.back();
  if (frame.object->is_object() && !frame.used.contains(""))
    check_keys(*frame.object, {frame.used.begin(), frame.used.end()}, frame.place);
  if (frame.as_tuple && frame.object->is_array() && frame.object->size() != frame.next)
    problem(frame.place, fmt::format("expected {} values", frame.next), "write [value, ...]");
  frames_.pop_back();
}

void FieldReader::check_keys(const Json& object, const std::vector<std::string_view>& known, const std::string& place) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      problem(place + "/" + key, "unknown key '" + key + "'", suggest(key, known), 1);
}

const Json* FieldReader::take(const FieldInfo& info) {
  Frame& frame = frames_.back();
  const Json& object = *frame.object;
  frame.used.emplace(info.key);
  if (info.key.empty()) return &object;
  if (frame.as_tuple) {
    ++frame.next;
    return object.is_array() && frame.next <= object.size() ? &object[frame.next - 1] : nullptr;
  }
  if (!frame.shorthand.empty() && object.is_string()) return frame.shorthand == info.key ? &object : nullptr;
  if (!object.is_object()) return nullptr;
  const auto found = object.find(info.key);
  if (found != object.end()) {
    given_.insert(place_of(info.key));
    return &*found;
  }
  if (info.required) problem(place_of(info.key), "missing", told(info, "add it"));
  return nullptr;
}

void FieldReader::head(const DocumentHead& head) {
  const std::string noun(head.noun);
  const Json* schema = take({.key = "schema"});
  if (schema == nullptr || *schema != head.schema)
    problem("/schema", "not " + noun + (schema == nullptr ? "" : ", but " + schema->dump()),
            fmt::format(R"(give it "schema": "{}")", head.schema), 0);
  std::optional<std::string> for_editors;
  text({.key = "$schema"}, for_editors);
  if (head.version == 0) return;
  const Json* version = take({.key = "version"});
  if (version == nullptr || !version->is_number_integer())
    return problem("/version", "no version", fmt::format(R"(give it "version": {})", head.version), 0);
  const auto given = version->get<std::int64_t>();
  if (given > head.version)
    problem("/version", fmt::format("version {} is newer than this program's {}", given, head.version),
            "use a newer spillway, or write " + noun + " anew", 0);
  if (given < 1)
    problem("/version", fmt::format("version {} never existed", given), fmt::format("use version {}", head.version), 0);
}

void FieldReader::constant(const FieldInfo& info, std::string_view text) {
  const Json* found = take(info);
  if (found != nullptr && *found != text)
    problem(place_of(info.key), fmt::format("{} is not \"{}\"", found->dump(), text), told(info));
}

void FieldReader::text(const FieldInfo& info, std::optional<std::string>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  if (!found->is_string()) return problem(place_of(info.key), "expected a text", "put it in quotes");
  if (info.required && found->get_ref<const std::string&>().empty())
    return problem(place_of(info.key), "empty", told(info, "fill it in"));
  value = found->get<std::string>();
}

void FieldReader::flag(const FieldInfo& info, std::optional<bool>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  if (!found->is_boolean()) return problem(place_of(info.key), "expected true or false", "write it without quotes");
  value = found->get<bool>();
}

bool FieldReader::is_word(const Json& value, const FieldInfo& info, const Words& words, const std::string& place,
                          std::size_t& word) {
  const std::string given = text_of(value);
  const std::optional<std::size_t> found = value.is_string() ? words.find(given) : std::nullopt;
  if (found) {
    word = *found;
    return true;
  }
  problem(place, fmt::format("no {} '{}'", info.key.empty() ? "word" : info.key, given),
          suggest(given, words.names(), "take one of " + words.listed()));
  return false;
}

void FieldReader::word(const FieldInfo& info, std::optional<std::size_t>& value, const Words& words) {
  const Json* found = take(info);
  std::size_t read = 0;
  if (found != nullptr && is_word(*found, info, words, place_of(info.key), read)) value = read;
}

void FieldReader::word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) {
  const Json* found = take(info);
  if (found == nullptr) return;
  const std::string given = text_of(*found);
  std::size_t read = 0;
  if (found->is_string() && given.ends_with(".json"))
    value = given;
  else if (is_word(*found, info, words, place_of(info.key), read))
    value = given;
}

void FieldReader::refuse_range(const FieldInfo& info, const std::string& place, const char* noun) {
  std::string range;
  const std::string low = shown(info.min), high = shown(info.max);
  if (std::isfinite(info.max))
    range = info.above_min ? fmt::format(" above {}, at most {}", low, high)
                           : fmt::format(" from {} {} {}", low, info.below_max ? "to below" : "to", high);
  else if (std::isfinite(info.min))
    range = info.above_min ? " above " + low : " of " + low + " or more";
  problem(place, fmt::format("expected {}{}", noun, range), told(info, "correct the value"));
}

bool FieldReader::is_whole(const Json& value, const FieldInfo& info, const std::string& place, std::int64_t& whole) {
  const double rounded = value.is_number() ? value.get<double>() : std::nan("");
  const bool sound = rounded == std::floor(rounded) && std::abs(rounded) < 9e18;
  if (sound) whole = value.is_number_float() ? static_cast<std::int64_t>(rounded) : value.get<std::int64_t>();
  if (sound && static_cast<double>(whole) >= info.min && static_cast<double>(whole) <= info.max) return true;
  refuse_range(info, place, "a whole number");
  return false;
}

void FieldReader::integer(const FieldInfo& info, std::optional<std::int64_t>& value) {
  const Json* found = take(info);
  std::int64_t read = 0;
  if (found != nullptr && is_whole(*found, info, place_of(info.key), read)) value = read;
}

void FieldReader::number(const FieldInfo& info, std::optional<double>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  const double read = found->is_number() ? found->get<double>() : std::nan("");
  if (std::isfinite(read) && read >= info.min && read <= info.max && !(info.above_min && read == info.min) &&
      !(info.below_max && read == info.max))
    value = read;
  else
    refuse_range(info, place_of(info.key), "a number");
}

bool FieldReader::is_scalar(const Json& value, const std::string& place, Scalar& scalar) {
  if (value.is_structured() || value.is_null()) {
    problem(place, "expected a number, a text, true or false", "write a single value");
    return false;
  }
  scalar = {text_of(value), value.is_number()};
  return true;
}

void FieldReader::scalar(const FieldInfo& info, std::optional<Scalar>& value) {
  const Json* found = take(info);
  Scalar read;
  if (found != nullptr && is_scalar(*found, place_of(info.key), read)) value = std::move(read);
}

void FieldReader::object(const FieldInfo& info, std::optional<std::string>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  if (!found->is_object()) return problem(place_of(info.key), "expected an object", told(info, "write { ... }"));
  value = found->dump();
}

const Json* FieldReader::take_list(const FieldInfo& info, const char* of) {
  const Json* found = take(info);
  if (found == nullptr) return nullptr;
  if (found->is_array() && found->size() >= info.least_items) return found;
  if (found->is_array())
    problem(place_of(info.key), "an empty list", fmt::format("give at least {}", info.least_items));
  else
    problem(place_of(info.key), fmt::format("expected a list of {}", of), told(info, "put them in [ ]"));
  return nullptr;
}

void FieldReader::texts(const FieldInfo& info, std::vector<std::string>& values) {
  const Json* list = take_list(info, "texts");
  if (list == nullptr) return;
  values.clear();
  for (const Json& each : *list) {
    if (!each.is_string()) return problem(place_of(info.key), "expected a list of texts", R"(write ["a", "b"])");
    values.push_back(each.get<std::string>());
  }
}

void FieldReader::word_list(const FieldInfo& info, std::vector<std::size_t>& places, const Words& words) {
  const Json* list = take_list(info, "words");
  if (list == nullptr) return;
  places.clear();
  for (const Json& each : *list) {
    std::size_t read = 0;
    if (is_word(each, info, words, fmt::format("{}/{}", place_of(info.key), places.size()), read))
      places.push_back(read);
  }
}

void FieldReader::integers(const FieldInfo& info, std::vector<std::int64_t>& values) {
  const Json* list = take_list(info, "whole numbers");
  if (list == nullptr) return;
  values.clear();
  for (const Json& each : *list) {
    std::int64_t read = 0;
    if (!is_whole(each, info, fmt::format("{}/{}", place_of(info.key), values.size()), read)) return;
    values.push_back(read);
  }
}

void FieldReader::scalars(const FieldInfo& info, std::vector<Scalar>& values) {
  const Json* list = take_list(info, "values");
  if (list == nullptr) return;
  values.clear();
  for (const Json& each : *list) {
    Scalar read;
    if (!is_scalar(each, fmt::format("{}/{}", place_of(info.key), values.size()), read)) return;
    values.push_back(std::move(read));
  }
}

void FieldReader::section(const FieldInfo& info, std::optional<std::string>& text,
                          const std::function<void(FieldVisitor&)>& describe_fields) {
  object(info, text);
  if (text) FieldVisitor::section(info, text, describe_fields);
}

bool FieldReader::begin_group(const FieldInfo& info) {
  static const Json nothing = Json::object();
  const Json* found = take(info);
  if (found == nullptr) return false;
  if (info.also_flag && found->is_boolean()) {
    if (found->get<bool>()) push({&nothing, place_of(info.key)});
    return found->get<bool>();
  }
  if (!found->is_object()) {
    problem(place_of(info.key), "expected an object", told(info, "write { ... }"));
    return false;
  }
  const std::string place = place_of(info.key);
  push({found, place});
  return true;
}

std::size_t FieldReader::begin_list(const FieldInfo& info, std::size_t) {
  static const Json nothing = Json::array();
  const Json* found = take_list(info, info.as_tuple ? "lists" : "objects");
  lists_.push_back({found != nullptr ? found : &nothing, place_of(info.key), info});
  return lists_.back().items->size();
}

void FieldReader::begin_element(std::size_t index) {
  const List& list = lists_.back();
  const Json& item = (*list.items)[index];
  const std::string place = list.place + "/" + std::to_string(index);
  const FieldInfo& info = list.info;
  if (info.as_tuple ? !item.is_array() : !item.is_object() && (info.shorthand.empty() || !item.is_string()))
    problem(place, info.as_tuple ? "expected a list" : "expected an object", told(info, "write { ... }"));
  push({&item, place, info.as_tuple, std::string(info.shorthand)});
}

std::vector<std::string> FieldReader::begin_map(const FieldInfo& info, std::vector<std::string> /*current*/) {
  static const Json nothing = Json::object();
  const Json* found = take(info);
  const bool sound = found != nullptr && found->is_object() && found->size() >= info.least_items;
  if (found != nullptr && !sound)
    problem(place_of(info.key), "expected an object", told(info, R"(write {"name": ...})"));
  lists_.push_back({sound ? found : &nothing, place_of(info.key), info});
  std::vector<std::string> names;
  for (const auto& [key, value] : lists_.back().items->items()) names.push_back(key);
  return names;
}

void FieldReader::begin_entry(const std::string& name) {
  const List& list = lists_.back();
  push({&list.items->at(name), list.place + "/" + name});
}

void throw_first(const std::vector<FieldProblem>& problems, const std::string& file) {
  const auto first =
      std::min_element(problems.begin(), problems.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (first != problems.end())
    throw InputError(file, first->place.empty() ? "/" : first->place, first->cause, first->remedy);
}

std::string document_schema(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  const auto schema = root.is_object() ? root.find("schema") : root.end();
  return schema != root.end() && schema->is_string() ? schema->get<std::string>() : "";
}

namespace {

Json parse(std::string_view text, const std::string& file, const std::string& remedy, bool comments) {
  std::vector<std::set<std::string>> open;
  std::string twice;
  // The parser keeps the last of two equal keys; a document must not say two things.
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return open.size() < deepest;
  };
  try {
    Json root = Json::parse(text, watch, true, comments);
    if (!twice.empty())
      throw InputError(file, "", "key '" + twice + "' appears twice in one object", "keep one of them");
    return root;
  } catch (const nlohmann::json::exception& error) {
    throw json_error(file, error, remedy);
  }
}

}  // namespace

Json parse_document(std::string_view text, const std::string& file, const std::string& remedy) {
  return parse(text, file, remedy, false);
}

Json parse_commented_document(std::string_view text, const std::string& file, const std::string& remedy) {
  return parse(text, file, remedy, true);
}

}  // namespace spillway
