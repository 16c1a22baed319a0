#include "base/field_writer.h"

namespace spillway {
namespace {

using Json = FieldWriter::Json;

Json json_of(const Scalar& scalar) {
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
  if (value || info.required) at(info) = value.value_or("");
}

void FieldWriter::flag(const FieldInfo& info, std::optional<bool>& value) {
  if (value) at(info) = *value;
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
  if (value) at(info) = *value;
}

void FieldWriter::scalar(const FieldInfo& info, std::optional<Scalar>& value) {
  if (value) at(info) = json_of(*value);
}

void FieldWriter::object(const FieldInfo& info, std::optional<std::string>& value) {
  if (value) at(info) = Json::parse(*value);
}

void FieldWriter::texts(const FieldInfo& info, std::vector<std::string>& values) {
  if (!values.empty()) at(info) = values;
}

void FieldWriter::word_list(const FieldInfo& info, std::vector<std::size_t>& places, const Words& words) {
  if (places.empty()) return;
  Json& list = at(info) = Json::array();
  for (const std::size_t place : places) list.push_back(words[place].name);
}

void FieldWriter::integers(const FieldInfo& info, std::vector<std::int64_t>& values) {
  if (!values.empty()) at(info) = values;
}

void FieldWriter::scalars(const FieldInfo& info, std::vector<Scalar>& values) {
  if (values.empty()) return;
  Json& list = at(info) = Json::array();
  for (const Scalar& value : values) list.push_back(json_of(value));
}

bool FieldWriter::begin_group(const FieldInfo& info) {
  keys_.emplace_back(info.key);
  open_.push_back(Json::object());
  return true;
}

void FieldWriter::end_group() {
  Json done = std::move(open_.back());
  open_.pop_back();
  if (!done.empty()) open_.back()[keys_.back()] = std::move(done);
  keys_.pop_back();
}

std::size_t FieldWriter::begin_list(const FieldInfo& info, std::size_t current) {
  keys_.emplace_back(info.key);
  open_.push_back(Json::array());
  tuples_.push_back(info.as_tuple);
  return current;
}

void FieldWriter::begin_element(std::size_t) { open_.push_back(tuples_.back() ? Json::array() : Json::object()); }

void FieldWriter::end_element() {
  Json done = std::move(open_.back());
  open_.pop_back();
  open_.back().push_back(std::move(done));
}

void FieldWriter::end_list() {
  tuples_.pop_back();
  end_group();
}

std::vector<std::string> FieldWriter::begin_map(const FieldInfo& info, std::vector<std::string> current) {
  begin_group(info);
  return current;
}

void FieldWriter::begin_entry(const std::string& name) {
  keys_.push_back(name);
  open_.push_back(Json::object());
}

void FieldWriter::end_entry() {
  Json done = std::move(open_.back());
  open_.pop_back();
  open_.back()[keys_.back()] = std::move(done);
  keys_.pop_back();
}

}  // namespace spillway
