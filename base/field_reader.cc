#include "base/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/amount.h"
#include "base/commented_document.h"
#include "base/input_error.h"
#include "base/json_error.h"
#include "base/json_integer.h"
#include "base/nearest_name.h"
#include "base/plain_json.h"
#include "base/shortened.h"
#include "base/text_budget.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t most_problems = 1000;  // that are told; what would be the next is not looked at
constexpr std::size_t most_keys = 10'000;    // of an object that the full parser reads: it looks for each among all

// What the field is, as a remedy.
std::string told(const FieldInfo& info, std::string_view otherwise = "correct it") {
  return info.about.empty() ? std::string(otherwise) : fmt::format("{}. {}: {}", otherwise, info.key, info.about);
}

std::string bound_text(double bound) {
  return bound == std::floor(bound) && std::abs(bound) < 9e18 ? std::to_string(static_cast<std::int64_t>(bound))
                                                              : fmt::format("{}", bound);
}

constexpr const char* not_a_scalar = "expected a number, a text, true or false";

bool is_whole(const Json& value, const FieldInfo& info, std::int64_t& whole) {
  constexpr double beyond = 9e18;
  if (const auto* number = value.get_ptr<const Json::number_float_t*>()) {
    if (!(std::abs(*number) < beyond)) return false;
    whole = static_cast<std::int64_t>(*number);
    if (static_cast<double>(whole) != *number) return false;
  } else if (const auto* counted = value.get_ptr<const Json::number_unsigned_t*>()) {
    if (!(static_cast<double>(*counted) < beyond)) return false;
    whole = static_cast<std::int64_t>(*counted);
  } else if (const auto* integer = value.get_ptr<const Json::number_integer_t*>()) {
    whole = *integer;
    if (!(std::abs(static_cast<double>(whole)) < beyond)) return false;
  } else {
    return false;
  }
  return static_cast<double>(whole) >= info.min && static_cast<double>(whole) <= info.max;
}

bool read_number(const Json& value, const FieldInfo& info, double& number) {
  if (info.or_null && value.is_null()) {
    number = std::numeric_limits<double>::infinity();
    return true;
  }
  number = value.is_number() ? value.get<double>() : std::nan("");
  return std::isfinite(number) && number >= info.min && number <= info.max && !(info.above_min && number == info.min) &&
         !(info.below_max && number == info.max);
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// A text with a unit as a number, where the field measures something; else the value. Throws InputError.
Json in_base_units(const Json& value, const FieldInfo& info, bool is_whole) {
  if (info.dimension == Dimension::plain || !value.is_string()) return value;
  const double amount = parse_amount(value.get_ref<const std::string&>(), info.dimension);
  return is_whole ? std::floor(amount) : amount;
}

}  // namespace

FieldReader::FieldReader(const Json& object, std::vector<FieldProblem>& problems, std::string place)
    : problems_(problems), root_(object), root_place_(std::move(place)) {
  push({&object});
}

void FieldReader::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) frames_.back().used.emplace_back(key);
}

void FieldReader::finish() {
  SPILLWAY_ASSERT(frames_.size() == 1);
  pop();
}

void FieldReader::problem(const std::string& place, std::string cause, std::string remedy, int rank) {
  if (problems_.size() >= most_problems && rank > 0) return;
  problems_.push_back({shortened(place), shortened(cause), std::move(remedy), rank});
}

std::string FieldReader::place_of(std::string_view key) const { return place_within(frames_.size() - 1, key); }

std::string FieldReader::place_within(std::size_t depth, std::string_view key) const {
  const Frame& frame = frames_[depth];
  if (frame.as_tuple) return place_of_frame(depth) + "/" + std::to_string(frame.next - 1);
  return key.empty() ? place_of_frame(depth) : place_of_frame(depth) + "/" + std::string(key);
}

std::string FieldReader::place_of_frame(std::size_t depth) const {
  if (depth == 0) return root_place_;
  const Frame& frame = frames_[depth];
  std::string place = place_within(depth - 1, frame.key);
  if (frame.index) place += "/" + std::to_string(*frame.index);
  if (!frame.entry.empty()) place += "/" + std::string(frame.entry);
  return place;
}

std::string FieldReader::place_of_item(const FieldInfo& info, std::size_t index) const {
  return place_of(info.key) + "/" + std::to_string(index);
}

bool FieldReader::is_object() const { return root_.is_object(); }

bool FieldReader::gave(std::string_view place) const {
  if (!place.starts_with(root_place_)) return false;
  place.remove_prefix(root_place_.size());
  const Json* at = &root_;
  while (!place.empty()) {
    place.remove_prefix(1);
    const std::string_view key = place.substr(0, place.find('/'));
    place.remove_prefix(key.size());
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (found == at->end()) return false;
    at = &*found;
  }
  return true;
}

void FieldReader::pop() {
  const Frame& frame = frames_.back();
  if (frame.object->is_object() && !frame.is_whole && !frame.has_others && !frame.as_tuple)
    check_keys(*frame.object, {frame.used.begin(), frame.used.end()}, place_of(""), frame.former);
  if (frame.as_tuple && frame.object->is_array() && frame.object->size() != frame.next)
    problem(place_of_frame(frames_.size() - 1), fmt::format("expected {} values", frame.next), "write [value, ...]");
  frames_.pop_back();
}

void FieldReader::check_keys(const Json& object, const std::vector<std::string_view>& known, const std::string& place,
                             const FormerKeys& former) {
  for (const auto& [key, value] : object.items()) {
    if (problems_.size() >= most_problems) return;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto renamed =
        std::find_if(former.begin(), former.end(), [&, &name = key](const auto& each) { return each.first == name; });
    if (renamed != former.end())
      problem(fmt::format("{}/{}", place, key), "'" + key + "' has a name that says more now",
              fmt::format("write '{}' instead", renamed->second), 1);
    else
      problem(fmt::format("{}/{}", place, key), "unknown key '" + key + "'", suggest(key, known), 1);
  }
}

const Json* FieldReader::take(const FieldInfo& info) {
  Frame& frame = frames_.back();
  const Json& object = *frame.object;
  if (frame.as_tuple) {
    ++frame.next;
    return object.is_array() && frame.next <= object.size() ? &object[frame.next - 1] : nullptr;
  }
  if (info.key.empty()) {
    frame.is_whole = true;
    return &object;
  }
  frame.used.emplace_back(info.key);
  if (!info.former.empty()) frame.former.emplace_back(info.former, info.key);
  if (!frame.shorthand.empty() && object.is_string()) return frame.shorthand == info.key ? &object : nullptr;
  if (!object.is_object()) return nullptr;
  const auto found = object.find(info.key);
  if (found != object.end()) return &*found;
  const auto older = info.alias.empty() ? object.end() : object.find(info.alias);
  if (older != object.end()) {
    frame.used.emplace_back(info.alias);
    return &*older;
  }
  if (info.required) problem(place_of(info.key), "missing", told(info, "add it"));
  return nullptr;
}

void FieldReader::head(const DocumentHead& head) {
  const std::string noun(head.noun);
  const Json* schema = take({.key = "schema"});
  if (schema == nullptr || *schema != head.schema)
    problem(place_of("schema"), "not " + noun + (schema == nullptr ? "" : ", but " + schema->dump()),
            fmt::format(R"(give it "schema": "{}")", head.schema), 0);
  std::optional<std::string> for_editors;
  text({.key = "$schema"}, for_editors);
  if (head.version == 0) return;
  const Json* version = take({.key = "version"});
  if (version == nullptr && !head.is_version_required) return;
  if (version == nullptr || !version->is_number_integer())
    return problem(place_of("version"), "no version", fmt::format(R"(give it "version": {})", head.version), 0);
  const std::int64_t given = json_integer(*version).value_or(std::numeric_limits<std::int64_t>::max());
  if (given > head.version)
    problem(place_of("version"), fmt::format("version {} is newer than this program's {}", given, head.version),
            "use a newer spillway, or write " + noun + " anew", 0);
  if (given < 1)
    problem(place_of("version"), fmt::format("version {} never existed", given),
            fmt::format("use version {}", head.version), 0);
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
  if (info.required && !info.even_empty && found->get_ref<const std::string&>().empty())
    return problem(place_of(info.key), "empty", told(info, "fill it in"));
  value = found->get<std::string>();
}

void FieldReader::flag(const FieldInfo& info, std::optional<bool>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  if (info.or_null && found->is_null()) return value.reset();
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
  if ((found->is_string() && given.ends_with(".json")) || is_word(*found, info, words, place_of(info.key), read))
    value = given;
}

void FieldReader::refuse_range(const FieldInfo& info, const std::string& place, const char* noun) {
  std::string range;
  const std::string low = bound_text(info.min), high = bound_text(info.max);
  if (std::isfinite(info.max))
    range = info.above_min ? fmt::format(" above {}, at most {}", low, high)
                           : fmt::format(" from {} {} {}", low, info.below_max ? "to below" : "to", high);
  else if (std::isfinite(info.min))
    range = info.above_min ? " above " + low : " of " + low + " or more";
  problem(place, fmt::format("expected {}{}", noun, range), told(info, "correct the value"));
}

void FieldReader::integer(const FieldInfo& info, std::optional<std::int64_t>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  std::int64_t read = 0;
  try {
    if (is_whole(in_base_units(*found, info, true), info, read))
      value = read;
    else
      refuse_range(info, place_of(info.key), "a whole number");
  } catch (const InputError& error) {
    problem(place_of(info.key), error.cause(), error.remedy());
  }
}

void FieldReader::number(const FieldInfo& info, std::optional<double>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  Json given;
  try {
    given = in_base_units(*found, info, false);
  } catch (const InputError& error) {
    return problem(place_of(info.key), error.cause(), error.remedy());
  }
  double read = 0;
  if (read_number(given, info, read))
    value = read;
  else
    refuse_range(info, place_of(info.key), "a number");
}

void FieldReader::hex(const FieldInfo& info, std::optional<std::uint64_t>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  const std::string digits = found->is_string() ? found->get<std::string>() : "";
  std::uint64_t read = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, read, 16);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end)
    return problem(place_of(info.key), "not a hexadecimal number", told(info, "write up to 16 digits in quotes"));
  value = read;
}

bool FieldReader::is_scalar(const Json& value, const FieldInfo& info, Scalar& scalar) {
  if (value.is_structured() || (value.is_null() && !info.or_null)) return false;
  scalar = {value.is_null() ? "" : text_of(value), value.is_number(), value.is_null()};
  return true;
}

void FieldReader::scalar(const FieldInfo& info, std::optional<Scalar>& value) {
  const Json* found = take(info);
  if (found == nullptr) return;
  Scalar read;
  if (!is_scalar(*found, info, read)) return problem(place_of(info.key), not_a_scalar, "write a single value");
  value = std::move(read);
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
    if (is_word(each, info, words, place_of_item(info, places.size()), read)) places.push_back(read);
  }
}

void FieldReader::integers(const FieldInfo& info, std::vector<std::int64_t>& values) {
  const Json* list = take_list(info, "whole numbers");
  if (list == nullptr) return;
  values.clear();
  values.reserve(list->size());
  for (const Json& each : list->get_ref<const Json::array_t&>()) {  // quicker than the document's iterators
    std::int64_t read = 0;
    if (!is_whole(each, info, read)) return refuse_range(info, place_of_item(info, values.size()), "a whole number");
    values.push_back(read);
  }
}

void FieldReader::numbers(const FieldInfo& info, std::vector<double>& values) {
  const Json* list = take_list(info, "numbers");
  if (list == nullptr) return;
  values.clear();
  values.reserve(list->size());
  for (const Json& each : list->get_ref<const Json::array_t&>()) {  // quicker than the document's iterators
    double read = 0;
    if (!read_number(each, info, read)) return refuse_range(info, place_of_item(info, values.size()), "a number");
    values.push_back(read);
  }
}

void FieldReader::scalars(const FieldInfo& info, std::vector<Scalar>& values) {
  const Json* list = take_list(info, "values");
  if (list == nullptr) return;
  values.clear();
  for (const Json& each : *list) {
    Scalar read;
    if (!is_scalar(each, info, read))
      return problem(place_of_item(info, values.size()), not_a_scalar, "write a single value");
    values.push_back(std::move(read));
  }
}

void FieldReader::rest(const FieldInfo& info, std::vector<std::pair<std::string, Scalar>>& values) {
  Frame& frame = frames_.back();
  if (!frame.object->is_object()) return;
  for (const auto& [key, value] : frame.object->items()) {
    if (std::find(frame.used.begin(), frame.used.end(), key) != frame.used.end()) continue;
    Scalar read;
    if (is_scalar(value, info, read))
      values.emplace_back(key, std::move(read));
    else
      problem(place_of(key), not_a_scalar, "write a single value");
  }
  frame.has_others = true;
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
    if (found->get<bool>()) push_group(info, nothing);
    return found->get<bool>();
  }
  if (info.as_tuple ? !found->is_array() : !found->is_object()) {
    problem(place_of(info.key), info.as_tuple ? "expected a list" : "expected an object",
            told(info, info.as_tuple ? "write [value, ...]" : "write { ... }"));
    return false;
  }
  push_group(info, *found);
  return true;
}

void FieldReader::push_group(const FieldInfo& info, const Json& object) {
  const bool is_older = !info.alias.empty() && current().is_object() && !current().contains(info.key);
  push({.object = &object, .key = is_older ? info.alias : info.key, .as_tuple = info.as_tuple});
}

std::size_t FieldReader::begin_list(const FieldInfo& info, std::size_t) {
  static const Json nothing = Json::array();
  const Json* found = take_list(info, info.as_tuple ? "lists" : "objects");
  lists_.push_back({found != nullptr ? found : &nothing, info, 0});
  return lists_.back().items->size();
}

void FieldReader::begin_element(std::size_t index) {
  const List& list = lists_.back();
  const FieldInfo& info = list.info;
  const Json& item = (*list.items)[index];
  if (info.as_tuple ? !item.is_array()
                    : !info.as_value && !item.is_object() && (info.shorthand.empty() || !item.is_string()))
    problem(place_of_item(info, index), info.as_tuple ? "expected a list" : "expected an object",
            told(info, info.as_tuple ? "write [value, ...]" : "write { ... }"));
  push({.object = &item, .key = info.key, .index = index, .as_tuple = info.as_tuple, .shorthand = info.shorthand});
}

std::vector<std::string> FieldReader::begin_map(const FieldInfo& info, std::vector<std::string> /*current*/) {
  static const Json nothing = Json::object();
  const Json* found = take(info);
  const bool sound = found != nullptr && found->is_object() && found->size() >= info.least_items;
  if (found != nullptr && !sound)
    problem(place_of(info.key), "expected an object", told(info, R"(write {"name": ...})"));
  lists_.push_back({sound ? found : &nothing, info, 0});
  std::vector<std::string> names;
  for (const auto& [key, value] : lists_.back().items->items()) names.push_back(key);
  return names;
}

void FieldReader::begin_entry(const std::string& name) {
  List& list = lists_.back();
  const auto& items = list.items->get_ref<const Json::object_t&>();
  const auto next = items.begin() + static_cast<std::ptrdiff_t>(std::min(list.next++, items.size()));
  const Json& item = next != items.end() && next->first == name ? next->second : items.at(name);
  if (list.info.as_tuple && !item.is_array())
    problem(place_of(list.info.key) + "/" + name, "expected a list", told(list.info, "write [value, ...]"));
  push({.object = &item, .key = list.info.key, .entry = name, .as_tuple = list.info.as_tuple});
}

void throw_first(const std::vector<FieldProblem>& problems, const std::string& file) {
  const auto first =
      std::min_element(problems.begin(), problems.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (first != problems.end())
    throw InputError(file, first->place.empty() ? "/" : first->place, first->cause, first->remedy);
}

std::string document_text(std::string_view text, std::string_view key) {
  // What is too deep or too wide is left out: who reads the document refuses it.
  std::size_t keys = 0;
  const auto of_the_root = [&keys](int depth, Json::parse_event_t event, Json&) {
    return depth <= 1 && (event != Json::parse_event_t::key || ++keys <= most_keys);
  };
  Json root;
  if (!parse_plain_json(text, deepest_nesting, root)) root = Json::parse(text, of_the_root, false);
  const auto found = root.is_object() ? root.find(key) : root.end();
  return found != root.end() && found->is_string() ? found->get<std::string>() : "";
}

void read_document(std::string_view text, const std::string& file,
                   const std::function<void(FieldVisitor&)>& describe_fields, const std::string& remedy) {
  Json root = parse_document(text, file, remedy);
  read_fields(root, file, "", describe_fields);
  clear_json(root);
}

namespace {

// The first line that nests too deeply.
std::string place_of_depth(std::string_view text, bool comments) {
  int depth = 0;
  std::size_t at = 0;
  for (; at < text.size() && depth <= deepest_nesting; ++at) {
    const std::string_view rest = text.substr(at);
    if (text[at] == '[' || text[at] == '{') ++depth;
    if (text[at] == ']' || text[at] == '}') --depth;
    if (text[at] == '"')
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    else if (comments && rest.starts_with("//"))
      at = std::min(text.find('\n', at), text.size() - 1);
    else if (comments && rest.starts_with("/*"))
      at = std::min(text.find("*/", at + 2), text.size() - 1);
  }
  return fmt::format(
      "line {}",
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size())), '\n'));
}

Json parse(std::string_view text, const std::string& file, const std::string& remedy, bool comments) {
  if (Json plain; parse_plain_json(text, deepest_nesting, plain)) return plain;
  // The parser takes a zero byte for the end of the text, and what follows it for nothing.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw InputError(file, "byte " + std::to_string(zero + 1), "not valid JSON", remedy);
  std::vector<std::set<std::string>> open;
  std::string twice;
  // The parser keeps the last of two equal keys; a document must not say two things.
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > deepest_nesting)
      throw InputError(file, place_of_depth(text, comments),
                       fmt::format("nested deeper than {} levels", deepest_nesting),
                       "check that this is the right file");
    if (!open.empty() && open.back().size() > most_keys)
      throw InputError(file, "", fmt::format("more than {} keys in one object", most_keys),
                       "check that this is the right file");
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return true;
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
