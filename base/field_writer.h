// FieldVisitor that makes the JSON object a FieldReader would read the same fields from.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/fields.h"

namespace spillway {

class FieldWriter : public virtual FieldVisitor {
 public:
  using Json = nlohmann::ordered_json;

  // `head`: keys that come first.
  explicit FieldWriter(Json head = Json::object()) { open_.push_back(std::move(head)); }
  [[nodiscard]] const Json& json() const { return open_.front(); }
  [[nodiscard]] std::string text() const { return open_.front().dump(2) + "\n"; }
  [[nodiscard]] std::string line() const { return open_.front().dump(); }

  void head(const DocumentHead& head) override;
  void constant(const FieldInfo& info, std::string_view text) override { at(info) = text; }
  void text(const FieldInfo& info, std::optional<std::string>& value) override;
  void flag(const FieldInfo& info, std::optional<bool>& value) override;
  void word(const FieldInfo& info, std::optional<std::size_t>& place, const Words& words) override;
  void word_or_file(const FieldInfo& info, std::optional<std::string>& value, const Words& words) override;
  void integer(const FieldInfo& info, std::optional<std::int64_t>& value) override;
  void number(const FieldInfo& info, std::optional<double>& value) override;
  void hex(const FieldInfo& info, std::optional<std::uint64_t>& value) override;
  void scalar(const FieldInfo& info, std::optional<Scalar>& value) override;
  void object(const FieldInfo& info, std::optional<std::string>& value) override;
  void texts(const FieldInfo& info, std::vector<std::string>& values) override;
  void word_list(const FieldInfo& info, std::vector<std::size_t>& places, const Words& words) override;
  void integers(const FieldInfo& info, std::vector<std::int64_t>& values) override;
  void numbers(const FieldInfo& info, std::vector<double>& values) override;
  void scalars(const FieldInfo& info, std::vector<Scalar>& values) override;
  void section(const FieldInfo& info, std::optional<std::string>& text,
               const std::function<void(FieldVisitor&)>& /*describe_fields*/) override {
    object(info, text);
  }
  void rest(const FieldInfo& info, std::vector<std::pair<std::string, Scalar>>& values) override;
  bool begin_group(const FieldInfo& info) override;
  bool begin_part(const FieldInfo& info, bool present) override { return present && begin_group(info); }
  void end_group() override;
  std::size_t begin_list(const FieldInfo& info, std::size_t current) override;
  void begin_element(std::size_t index) override;
  void end_element() override;
  void end_list() override;
  std::vector<std::string> begin_map(const FieldInfo& info, std::vector<std::string> current) override;
  void begin_entry(const std::string& name) override;
  void end_entry() override;
  void end_map() override { end_list(); }

 protected:
  Json& at(const FieldInfo& info);

 private:
  // An empty list is left out unless it is asked for, or its place counts.
  [[nodiscard]] bool shows_empty(const FieldInfo& info) const;
  void begin_item();
  Json take();

  std::vector<Json> open_;  // the innermost last
  std::vector<std::string> keys_;
  std::vector<FieldInfo> lists_;  // and maps
};

}  // namespace spillway
