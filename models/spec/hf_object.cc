#include "models/spec/hf_object.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/input_error.h"

namespace spillway::models {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t largest = 1 << 24;

const Json& empty_object() {
  static const Json empty = Json::object();
  return empty;
}

}  // namespace

HfObject::HfObject(const Json& json, std::string file, std::string place, const Json* defaults)
    : json_(json), file_(std::move(file)), place_(std::move(place)), defaults_(defaults) {
  if (!json_.is_object()) fail("", "not an object", "give the config.json as it was published");
}

void HfObject::fail(std::string_view key, const std::string& cause, const std::string& remedy) const {
  throw InputError(file_, fmt::format("{}/{}", place_, key), cause, remedy);
}

void HfObject::unsupported(std::string_view key, const std::string& what) const {
  fail(key, what + " is not modelled",
       "docs/internals/models.md lists what is; describe the nearest shape in a model file");
}

const Json* HfObject::find(const char* key) const {
  const auto found = json_.find(key);
  if (found != json_.end()) return found->is_null() ? nullptr : &*found;
  if (defaults_ == nullptr) return nullptr;
  const auto usual = defaults_->find(key);
  return usual == defaults_->end() ? nullptr : &*usual;
}

bool HfObject::has(const char* key) const { return find(key) != nullptr; }
bool HfObject::mentions(const char* key) const { return json_.contains(key); }
bool HfObject::is_text(const char* key) const { return find(key) != nullptr && find(key)->is_string(); }
bool HfObject::is_list(const char* key) const { return find(key) != nullptr && find(key)->is_array(); }

std::int64_t HfObject::integer(const char* key, std::int64_t fallback, std::int64_t low) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{largest}) &&
                    value->get<std::int64_t>() >= low && value->get<std::int64_t>() <= largest;
  if (!fits) fail(key, "not a whole number in range", fmt::format("give {} .. {}", low, largest));
  return value->get<std::int64_t>();
}

std::int64_t HfObject::required(const char* key, std::int64_t low) const {
  if (!has(key)) fail(key, "missing: no size is assumed", "add it, as the model's published config.json has it");
  return integer(key, 0, low);
}

double HfObject::number(const char* key, double fallback, double low, double below) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !(value->get<double>() >= low && value->get<double>() < below))
    fail(key, fmt::format("not a number in [{}, {})", low, below), "correct it");
  return value->get<double>();
}

bool HfObject::flag(const char* key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "neither true nor false", "write true or false");
  return value->get<bool>();
}

std::string HfObject::text(const char* key, const std::string& fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail(key, "not a text", "write it in quotes");
  return value->get<std::string>();
}

HfObject HfObject::object(const char* key, const Json* defaults) const {
  const Json* value = find(key);
  return {value == nullptr ? empty_object() : *value, file_, place_ + "/" + key, defaults};
}

std::int64_t HfObject::integer_of(std::initializer_list<const char*> keys, std::int64_t fallback) const {
  for (const char* key : keys)
    if (has(key)) return alike(key, fallback);
  return fallback;
}

std::int64_t HfObject::alike(const char* key, std::int64_t fallback) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_array() || value->empty()) return integer(key, fallback, 0);
  for (const Json& each : *value)
    if (each != value->front()) unsupported(key, "a list of different numbers");
  const Json first = {{key, value->front()}};
  return HfObject(first, file_, place_).integer(key, fallback, 0);
}

std::int64_t HfObject::size(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return 0;
  if (!value->is_array() && !value->is_object()) fail(key, "neither a list nor an object", "correct it");
  return static_cast<std::int64_t>(value->size());
}

std::vector<std::int64_t> HfObject::integers(const char* key) const {
  std::vector<std::int64_t> numbers;
  const std::int64_t count = size(key);
  for (std::int64_t i = 0; i < count; ++i) {
    const Json* value = find(key);
    if (!value->is_array()) fail(key, "not a list", "correct it");
    const Json& each = (*value)[static_cast<std::size_t>(i)];
    if (!each.is_number_integer() || each.get<std::int64_t>() < 0 || each.get<std::int64_t>() > largest)
      fail(key, "not a list of whole numbers in range", fmt::format("give 0 .. {}", largest));
    numbers.push_back(each.get<std::int64_t>());
  }
  return numbers;
}

std::vector<std::string> HfObject::texts(const char* key) const {
  std::vector<std::string> all;
  const std::int64_t count = size(key);
  for (std::int64_t i = 0; i < count; ++i) all.push_back(text_at(key, i));
  return all;
}

std::vector<HfObject> HfObject::objects(const char* key) const {
  std::vector<HfObject> all;
  const Json* value = find(key);
  if (value == nullptr) return all;
  if (!value->is_array()) fail(key, "not a list of objects", "correct it");
  for (std::size_t i = 0; i < value->size(); ++i)
    all.emplace_back((*value)[i], file_, fmt::format("{}/{}/{}", place_, key, i));
  return all;
}

std::vector<std::string> HfObject::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : json_.items())
    if (!value.is_null()) all.push_back(key);
  return all;
}

std::string HfObject::text_at(const char* key, std::int64_t index) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_array() || !(*value)[static_cast<std::size_t>(index)].is_string())
    fail(key, "not a list of texts", "correct it");
  return (*value)[static_cast<std::size_t>(index)].get<std::string>();
}

}  // namespace spillway::models
