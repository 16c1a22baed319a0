#include "base/field_schema.h"

#include <fmt/format.h>

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json bound(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e18) return static_cast<std::int64_t>(value);
  return value;
}

Json ranged(Json schema, const FieldInfo& info) {
  if (std::isfinite(info.min)) schema[info.above_min ? "exclusiveMinimum" : "minimum"] = bound(info.min);
  if (std::isfinite(info.max)) schema[info.below_max ? "exclusiveMaximum" : "maximum"] = bound(info.max);
  return schema;
}

Json or_null(const char* type, const FieldInfo& info) {
  return info.or_null ? Json::array({type, "null"}) : Json(type);
}

Json single_value(const FieldInfo& info) {
  Json types = {"string", "number", "boolean"};
  if (info.or_null) types.push_back("null");
  return {{"type", std::move(types)}};
}

Json enumeration(const Words& words) {
  Json list = Json::array();
  for (const std::string_view name : words.spellings()) list.push_back(name);
  return {{"enum", std::move(list)}};
}

// "What it is. torch: PyTorch's caching allocator; gmlake: stitching."
std::string with_words(std::string_view about, const Words& words) {
  std::string text(about), told;
  for (const Word& word : words)
    if (!word.about.empty()) told += fmt::format("{}{}: {}", told.empty() ? "" : "; ", word.name, word.about);
  if (!told.empty()) text += (text.empty() ? "" : " ") + told + ".";
  return text;
}

// What measures something may be a text with a unit.
Json type_of(const char* type, const FieldInfo& info) {
  return info.dimension == Dimension::plain ? Json(type) : Json::array({type, "string"});
}

}  // namespace

Json FieldSchema::pop() {
  Frame frame = std::move(open_.back());
  open_.pop_back();
  if (!frame.whole.is_null()) return std::move(frame.whole);
  Json schema = {{"type", "object"}};
  if (!frame.required.empty()) schema["required"] = std::move(frame.required);
  schema["properties"] = std::move(frame.properties);
  if (!frame.has_others) schema["additionalProperties"] = false;
  schema.update(frame.rules);
  return schema;
}

Json FieldSchema::take() {
  Json schema = pop();
  if (!definitions_.empty()) schema["$defs"] = std::move(definitions_);
  return schema;
}

std::string FieldSchema::document(std::string_view id, std::string_view title, std::string_view about) {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"$id", id},
                 {"title", title},
                 {"description", about}};
  schema.update(take());
  return schema.dump(2) + "\n";
}

void FieldSchema::add(const FieldInfo& info, Json schema) {
  if (!info.about.empty() && !schema.contains("description")) schema["description"] = info.about;
  Frame& frame = open_.back();
  if (info.key.empty()) {
    frame.whole = std::move(schema);
    return;
  }
  if (info.required) frame.required.push_back(info.key);
  frame.order.push_back(schema);
  frame.properties[std::string(info.key)] = std::move(schema);
}

void FieldSchema::head(const DocumentHead& head) {
  add({.key = "$schema"}, {{"type", "string"}});
  add({.key = "schema", .required = true}, {{"const", head.schema}});
  if (head.version > 0)
    add({.key = "version", .about = "Newer versions are refused.", .required = head.is_version_required},
        {{"const", head.version}});
}

void FieldSchema::constant(const FieldInfo& info, std::string_view text) { add(info, {{"const", text}}); }

void FieldSchema::text(const FieldInfo& info, std::optional<std::string>& value) {
  Json schema = {{"type", "string"}};
  if (info.required && !info.even_empty) schema["minLength"] = 1;
  if (!info.pattern.empty()) schema["pattern"] = info.pattern;
  if (value) schema["default"] = *value;
  add(info, std::move(schema));
}

void FieldSchema::flag(const FieldInfo& info, std::optional<bool>& value) {
  Json schema = {{"type", or_null("boolean", info)}};
  if (value) schema["default"] = *value;
  add(info, std::move(schema));
}

void FieldSchema::word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) {
  Json schema = enumeration(words);
  if (place && *place < words.size()) schema["default"] = words[*place].name;
  if (const std::string about = with_words(info.about, words); !about.empty()) schema["description"] = about;
  add(info, std::move(schema));
}

void FieldSchema::word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) {
  Json schema = {{"anyOf", Json::array({enumeration(words), Json{{"type", "string"}, {"pattern", "\\.json$"}}})}};
  if (value) schema["default"] = *value;
  if (const std::string about = with_words(info.about, words); !about.empty()) schema["description"] = about;
  add(info, std::move(schema));
}

void FieldSchema::integer(const FieldInfo& info, std::optional<std::int64_t>& value) {
  Json schema = ranged({{"type", type_of("integer", info)}}, info);
  if (value) schema["default"] = *value;
  add(info, std::move(schema));
}

void FieldSchema::number(const FieldInfo& info, std::optional<double>& value) {
  Json schema = ranged({{"type", type_of("number", info)}}, info);
  if (value) schema["default"] = bound(*value);
  add(info, std::move(schema));
}

void FieldSchema::hex(const FieldInfo& info, std::optional<std::uint64_t>& /*value*/) {
  add(info, {{"type", "string"}, {"pattern", "^[0-9a-fA-F]{1,16}$"}});
}

void FieldSchema::scalar(const FieldInfo& info, std::optional<Scalar>& /*value*/) { add(info, single_value(info)); }

void FieldSchema::object(const FieldInfo& info, std::optional<std::string>& /*value*/) {
  add(info, {{"type", "object"}});
}

Json FieldSchema::list_of(const FieldInfo& info, Json items) const {
  Json schema = {{"type", "array"}};
  if (info.least_items > 0) schema["minItems"] = info.least_items;
  schema["items"] = std::move(items);
  return schema;
}

void FieldSchema::texts(const FieldInfo& info, std::vector<std::string>& /*values*/) {
  add(info, list_of(info, {{"type", "string"}}));
}

void FieldSchema::word_list(const FieldInfo& info, std::vector<std::size_t>& /*places*/, const Words& words) {
  Json schema = list_of(info, enumeration(words));
  if (const std::string about = with_words(info.about, words); !about.empty()) schema["description"] = about;
  add(info, std::move(schema));
}

void FieldSchema::integers(const FieldInfo& info, std::vector<std::int64_t>& /*values*/) {
  add(info, list_of(info, ranged({{"type", "integer"}}, info)));
}

void FieldSchema::numbers(const FieldInfo& info, std::vector<double>& /*values*/) {
  add(info, list_of(info, ranged({{"type", or_null("number", info)}}, info)));
}

void FieldSchema::scalars(const FieldInfo& info, std::vector<Scalar>& /*values*/) {
  add(info, list_of(info, single_value(info)));
}

void FieldSchema::define(const std::string& name, const std::function<Json()>& make) {
  if (!definitions_.contains(name)) definitions_[name] = make();
}

bool FieldSchema::begin_group(const FieldInfo& info) {
  infos_.push_back(info);
  push();
  return true;
}

void FieldSchema::end_group() {
  const FieldInfo info = infos_.back();
  Json schema = pop_item(info);
  infos_.pop_back();
  if (info.also_flag) schema = {{"anyOf", Json::array({Json{{"type", "boolean"}}, std::move(schema)})}};
  add(info, std::move(schema));
}

std::size_t FieldSchema::begin_list(const FieldInfo& info, std::size_t) {
  infos_.push_back(info);
  return 1;
}

Json FieldSchema::pop_item(const FieldInfo& info) {
  const Json order = open_.back().order;
  Json item = pop();
  if (info.as_tuple)
    item = {{"type", "array"}, {"prefixItems", order}, {"minItems", order.size()}, {"maxItems", order.size()}};
  return item;
}

void FieldSchema::end_element() {
  const FieldInfo& info = infos_.back();
  Json item = pop_item(info);
  if (!info.shorthand.empty())
    item = {{"anyOf", Json::array({Json{{"type", "string"}, {"minLength", 1}}, std::move(item)})}};
  add(info, list_of(info, std::move(item)));
}

std::vector<std::string> FieldSchema::begin_map(const FieldInfo& info, std::vector<std::string> /*current*/) {
  infos_.push_back(info);
  return {"*"};
}

void FieldSchema::end_entry() {
  const FieldInfo& info = infos_.back();
  Json schema = {{"type", "object"}};
  if (info.least_items > 0) schema["minProperties"] = info.least_items;
  schema["additionalProperties"] = pop_item(info);
  add(info, std::move(schema));
}

void FieldSchema::rest(const FieldInfo& info, std::vector<std::pair<std::string, Scalar>>& /*values*/) {
  Json value = single_value(info);
  if (!info.about.empty()) value["description"] = info.about;
  open_.back().rules["patternProperties"][std::string(info.pattern)] = std::move(value);
}

void FieldSchema::rule(std::string_view json) { open_.back().rules.update(Json::parse(json)); }

}  // namespace spillway
