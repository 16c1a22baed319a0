#include "base/field_setter.h"

#include <fmt/format.h>

#include <charconv>

#include "base/amount.h"
#include "base/input_error.h"
#include "base/nearest_name.h"

namespace spillway {
namespace {

template <class Number>
bool is_number(std::string_view text, std::optional<Number>& into) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  into = value;
  return true;
}

}  // namespace

bool FieldSetter::wants(std::string_view key) {
  const std::string_view rest = path_.substr(depth_);
  return rest.starts_with(key) && (rest.size() == key.size() || rest[key.size()] == '.');
}

bool FieldSetter::is_it(const FieldInfo& info) {
  if (path_.substr(depth_) != info.key) return false;
  found_ = true;
  return true;
}

void FieldSetter::fail(const std::string& cause, const std::string& remedy) const {
  throw InputError("", std::string(path_), cause, remedy);
}

bool FieldSetter::begin_group(const FieldInfo& info) {
  if (!wants(info.key)) return false;
  depth_ += info.key.size() + 1;
  return PathVisitor::begin_group(info);
}

void FieldSetter::end_group() {
  const std::size_t dot = depth_ < 2 ? std::string_view::npos : path_.rfind('.', depth_ - 2);
  depth_ = dot == std::string_view::npos ? 0 : dot + 1;
  PathVisitor::end_group();
}

void FieldSetter::text(const FieldInfo& info, std::optional<std::string>& value) {
  if (is_it(info)) value = text_;
}

void FieldSetter::flag(const FieldInfo& info, std::optional<bool>& value) {
  if (!is_it(info)) return;
  if (text_ != "true" && text_ != "false")
    fail(fmt::format("\"{}\" is not a value of it", text_), "give true or false");
  value = text_ == "true";
}

void FieldSetter::word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) {
  if (!is_it(info)) return;
  const std::optional<std::size_t> found = words.find(text_);
  if (!found)
    fail(fmt::format("no {} '{}'", info.key, text_), suggest(text_, words.names(), "take one of " + words.listed()));
  place = found;
}

void FieldSetter::word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) {
  if (!is_it(info)) return;
  if (!text_.ends_with(".json") && !words.find(text_))
    fail(fmt::format("no {} '{}'", info.key, text_), suggest(text_, words.names(), "take one of " + words.listed()));
  value = text_;
}

void FieldSetter::integer(const FieldInfo& info, std::optional<std::int64_t>& value) {
  if (!is_it(info) || is_number(text_, value)) return;
  if (info.dimension == Dimension::plain)
    fail(fmt::format("\"{}\" is not a value of it", text_), "give a whole number");
  try {
    value = parse_whole(text_, info.dimension);
  } catch (const InputError& error) {
    fail(error.cause(), error.remedy());
  }
}

void FieldSetter::number(const FieldInfo& info, std::optional<double>& value) {
  if (is_it(info) && !is_number(text_, value)) fail(fmt::format("\"{}\" is not a value of it", text_), "give a number");
}

void FieldTexts::add(std::string_view text) {
  texts_ += text;
  if (path_.empty()) texts_ += ';';
}

void FieldTexts::text(const FieldInfo& /*info*/, std::optional<std::string>& value) { add(value.value_or("")); }

void FieldTexts::flag(const FieldInfo& /*info*/, std::optional<bool>& value) {
  add(value.value_or(false) ? "true" : "false");
}

void FieldTexts::word(const FieldInfo& /*info*/, std::optional<std::size_t>& place, const Words& words) {
  add(place && *place < words.size() ? words[*place].name : "");
}

void FieldTexts::word_or_file(const FieldInfo& /*info*/, std::optional<std::string>& value, const Words& /*words*/) {
  add(value.value_or(""));
}

void FieldTexts::integer(const FieldInfo& /*info*/, std::optional<std::int64_t>& value) {
  add(value ? fmt::format("{}", *value) : "");
}

void FieldTexts::number(const FieldInfo& /*info*/, std::optional<double>& value) {
  add(value ? fmt::format("{}", *value) : "");
}

}  // namespace spillway
