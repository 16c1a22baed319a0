// What the readers of our JSON documents share: fields with their checks. Every message names the file and the place,
// as a JSON pointer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace spillway {

// A value as --set takes it: texts without quotes, all else as JSON.
std::string setting_text(const nlohmann::ordered_json& value);

class JsonFields {
 public:
  using Json = nlohmann::ordered_json;
  using Keys = std::span<const std::string_view>;

  // name: of the file. help: where to look up what may be written ("see docs/sweep.md").
  JsonFields(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const;
  // Fails where it is no object or has another key; the nearest one is offered.
  void known(const Json& object, const std::string& place, Keys keys) const;
  // Empty where it isn't given.
  [[nodiscard]] std::string text(const Json& object, const std::string& place, const std::string& key) const;
  [[nodiscard]] double number(const Json& object, const std::string& place, const std::string& key, double otherwise,
                              double least, double most) const;

 private:
  std::string name_, help_;
};

}  // namespace spillway
