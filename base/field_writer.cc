#include "base/field_writer.h"

#include <fmt/format.h>

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(double number, const FieldInfo& info) {
  return info.or_null && std::isinf(number) ? Json() : Json(number);
}

Json json_of(const Scalar& scalar) {
  if (scalar.is_null) return {};
  const Json parsed = Json::parse(scalar.text, nullptr, false);
  return scalar.is_number || parsed.is_boolean() ? parsed : Json(scalar.text);
}

}  // namespace

Json& FieldWriter::at(const FieldInfo& info) {
  Json& object = open_.back();
  if (info.key.empty()) return object;
  if (object.is_array()) return object.emplace_back();
  return object[std::string(info.key)];
}

void FieldWriter::head(const DocumentHead& head) {
  at({.key = "schema"}) = head.schema;
  if (head.version > 0) at({.key = "version"}) = head.version;
}

void FieldWriter::text(const FieldInfo& info, std::optional<std::string>& value) {
  if (value || info.required || info.even_empty) at(info) = value.value_or("");
}

void FieldWriter::flag(const FieldInfo& info, std::optional<bool>& value) {
  if (value || info.or_null) at(info) = value ? Json(*value) : Json();
}

void FieldWriter::word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) {
  if (place && *place < words.size()) at(info) = words[*place].name;
}

void FieldWriter::word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& /*words*/) {
  if (value) at(info) = *value;
}

void FieldWriter::integer(const FieldInfo& info, std::optional<std::int64_t>& value) {
  if (value) at(info) = *value;
}

void FieldWriter::number(const FieldInfo& info, std::optional<double>& value) {
  if (value) at(info) = json_of(*value, info);
}

void FieldWriter::hex(const FieldInfo& info, std::optional<std::uint64_t>& value) {
  if (value) at(info) = fmt::format("{:016x}", *value);
}

void FieldWriter::scalar(const FieldInfo& info, std::optional<Scalar>& value) {
  if (value) at(info) = json_of(*value);
}

void FieldWriter::object(const FieldInfo& info, std::optional<std::string>& value) {
  if (value) at(info) = Json::parse(*value);
}

void FieldWriter::texts(const FieldInfo& info, std::vector<std::string>& values) {
  if (!values.empty() || shows_empty(info)) at(info) = values;
}

void FieldWriter::word_list(const FieldInfo& info, std::vector<std::size_t>& places, const Words& words) {
  if (places.empty()) return;
  Json& list = at(info) = Json::array();
  for (const std::size_t place : places) list.push_back(words[place].name);
}

void FieldWriter::integers(const FieldInfo& info, std::vector<std::int64_t>& values) {
  if (!values.empty() || shows_empty(info)) at(info) = values;
}

void FieldWriter::numbers(const FieldInfo& info, std::vector<double>& values) {
  if (values.empty() && !shows_empty(info)) return;
  Json& list = at(info) = Json::array();
  for (const double value : values) list.push_back(json_of(value, info));
}

void FieldWriter::rest(const FieldInfo& /*info*/, std::vector<std::pair<std::string, Scalar>>& values) {
  for (const auto& [key, value] : values) at({.key = key}) = json_of(value);
}

void FieldWriter::scalars(const FieldInfo& info, std::vector<Scalar>& values) {
  if (values.empty()) return;
  Json& list = at(info) = Json::array();
  for (const Scalar& value : values) list.push_back(json_of(value));
}

bool FieldWriter::begin_group(const FieldInfo& info) {
  keys_.emplace_back(info.key);
  open_.push_back(info.as_tuple ? Json::array() : Json::object());
  return true;
}

void FieldWriter::end_group() {
  Json done = take();
  if (!done.empty()) at({.key = keys_.back()}) = std::move(done);
  keys_.pop_back();
}

FieldWriter::Json FieldWriter::take() {
  Json done = std::move(open_.back());
  open_.pop_back();
  return done;
}

bool FieldWriter::shows_empty(const FieldInfo& info) const {
  return info.even_empty || info.key.empty() || open_.back().is_array();
}

std::size_t FieldWriter::begin_list(const FieldInfo& info, std::size_t current) {
  keys_.emplace_back(info.key);
  open_.push_back(Json::array());
  lists_.push_back(info);
  return current;
}

void FieldWriter::begin_item() {
  const FieldInfo& info = lists_.back();
  open_.push_back(info.as_tuple ? Json::array() : info.as_value ? Json() : Json::object());
}

void FieldWriter::begin_element(std::size_t) { begin_item(); }

void FieldWriter::end_element() {
  Json done = take();
  open_.back().push_back(std::move(done));
}

void FieldWriter::end_list() {
  Json done = take();
  if (!done.empty() || shows_empty(lists_.back())) at({.key = keys_.back()}) = std::move(done);
  keys_.pop_back();
  lists_.pop_back();
}

std::vector<std::string> FieldWriter::begin_map(const FieldInfo& info, std::vector<std::string> current) {
  keys_.emplace_back(info.key);
  open_.push_back(Json::object());
  lists_.push_back(info);
  return current;
}

void FieldWriter::begin_entry(const std::string& name) {
  keys_.push_back(name);
  begin_item();
}

void FieldWriter::end_entry() {
  Json done = take();
  open_.back()[keys_.back()] = std::move(done);
  keys_.pop_back();
}

}  // namespace spillway
