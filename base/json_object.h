// JsonObject: reads the keys of one JSON object with checks; an error names the file and the place in it. All keys
// must be taken before finish().
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace spillway {

class JsonObject {
 public:
  // `json` must outlive the object. `place` is "" at the top, "/experts" inside. `description`: the document that
  // lists the keys, for remedies.
  JsonObject(const nlohmann::json& json, std::string file, std::string place, std::string description);

  [[noreturn]] void fail(const std::string& key, const std::string& cause, const std::string& remedy) const;
  const nlohmann::json* take(const char* key);  // null when absent
  std::int64_t integer(const char* key, std::int64_t low, std::int64_t high);
  std::int64_t integer_or(const char* key, std::int64_t low, std::int64_t high, std::int64_t fallback);
  std::string text(const char* key);
  bool flag(const char* key, bool fallback = false);
  double number_or(const char* key, double low, double below, double fallback);  // in [low, below)
  // One of `choices`, in the order of the enum's values.
  template <class Enum>
  Enum choice(const char* key, std::initializer_list<const char*> choices) {
    return static_cast<Enum>(choice_index(key, choices));
  }
  template <class Enum>
  Enum choice_or(const char* key, std::initializer_list<const char*> choices, Enum fallback) {
    return take(key) == nullptr ? fallback : choice<Enum>(key, choices);
  }
  void finish() const;  // fails at a key that was not taken

 private:
  const nlohmann::json& need(const char* key);
  std::size_t choice_index(const char* key, std::initializer_list<const char*> choices);

  const nlohmann::json& json_;
  std::string file_, place_, description_;
  std::vector<std::string> taken_;
};

// The document in `text`; InputError where it is not JSON.
nlohmann::json parse_json(std::string_view text, const std::string& file);

}  // namespace spillway
