// HfObject: the keys of a Hugging Face configuration. A key that is missing or null has the default given; others
// than those asked for are ignored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace spillway::models {

class HfObject {
 public:
  // `json` and `defaults`, which has what `json` leaves out, must outlive the object; `place` is "" at the top.
  HfObject(const nlohmann::json& json, std::string file, std::string place = "",
           const nlohmann::json* defaults = nullptr);

  [[noreturn]] void fail(std::string_view key, const std::string& cause, const std::string& remedy) const;
  // For settings that are read but not modelled.
  [[noreturn]] void unsupported(std::string_view key, const std::string& what) const;

  [[nodiscard]] bool has(const char* key) const;       // there and not null
  [[nodiscard]] bool mentions(const char* key) const;  // there, perhaps null
  [[nodiscard]] bool is_text(const char* key) const;
  [[nodiscard]] bool is_list(const char* key) const;
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t low = 1) const;
  // A number of a shape: fails when it is missing or null, so that no size is assumed.
  [[nodiscard]] std::int64_t required(const char* key, std::int64_t low = 1) const;
  [[nodiscard]] double number(const char* key, double fallback, double low, double below) const;
  [[nodiscard]] bool flag(const char* key, bool fallback) const;
  [[nodiscard]] std::string text(const char* key, const std::string& fallback) const;
  // Empty when missing.
  [[nodiscard]] HfObject object(const char* key, const nlohmann::json* defaults = nullptr) const;
  // The value of the first of the keys that is there; a list of equal numbers is one of them.
  [[nodiscard]] std::int64_t integer_of(std::initializer_list<const char*> keys, std::int64_t fallback) const;
  // One number, or a list of equal ones, a layer each.
  [[nodiscard]] std::int64_t alike(const char* key, std::int64_t fallback) const;
  // Elements of a list or keys of an object; 0 when missing.
  [[nodiscard]] std::int64_t size(const char* key) const;
  [[nodiscard]] std::string text_at(const char* key, std::int64_t index) const;  // of a list of texts
  // A list of whole numbers 0 .. 2^24, of texts, of objects; empty when missing.
  [[nodiscard]] std::vector<std::int64_t> integers(const char* key) const;
  [[nodiscard]] std::vector<std::string> texts(const char* key) const;
  [[nodiscard]] std::vector<HfObject> objects(const char* key) const;
  [[nodiscard]] std::vector<std::string> keys() const;  // that are there and not null

 private:
  [[nodiscard]] const nlohmann::json* find(const char* key) const;

  const nlohmann::json& json_;
  std::string file_, place_;
  const nlohmann::json* defaults_;
};

}  // namespace spillway::models
