// FieldVisitor that makes the JSON Schema (draft 2020-12) of what a FieldReader takes. Visit an object as it is when
// nothing is given: its values are the defaults.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

#include "base/fields.h"

namespace spillway {

class FieldSchema : public virtual FieldVisitor {
 public:
  using Json = nlohmann::ordered_json;

  FieldSchema() { push(); }
  // The schema of the root object. Call once, at the end.
  [[nodiscard]] Json take();
  // `title` and `about` for people; `id` is the schema's own name.
  [[nodiscard]] std::string document(std::string_view id, std::string_view title, std::string_view about);

  void head(const DocumentHead& head) override;
  void constant(const FieldInfo& info, std::string_view text) override;
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
  bool begin_group(const FieldInfo& info) override;
  void end_group() override;
  std::size_t begin_list(const FieldInfo& info, std::size_t current) override;
  void begin_element(std::size_t) override { push(); }
  void end_element() override;
  void end_list() override { infos_.pop_back(); }
  std::vector<std::string> begin_map(const FieldInfo& info, std::vector<std::string> current) override;
  void begin_entry(const std::string&) override { push(); }
  void end_entry() override;
  void end_map() override { infos_.pop_back(); }
  void others() override { open_.back().has_others = true; }
  void rest(const FieldInfo& info, std::vector<std::pair<std::string, Scalar>>& values) override;
  void rule(std::string_view json) override;

 protected:
  void add(const FieldInfo& info, Json schema);
  // A schema that several fields have, by its name; made once.
  void define(const std::string& name, const std::function<Json()>& make);

 private:
  struct Frame {
    Json properties = Json::object(), required = Json::array(), rules = Json::object();
    Json order = Json::array();  // schemas of the fields, as a tuple has them
    Json whole;                  // of the entry itself (empty key)
    bool has_others = false;     // keys beyond these
  };
  void push() { open_.emplace_back(); }
  // The schema of the innermost object, which is closed.
  Json pop();
  // The schema of an element or an entry, which is closed.
  Json pop_item(const FieldInfo& info);
  Json list_of(const FieldInfo& info, Json items) const;

  std::vector<Frame> open_;
  std::vector<FieldInfo> infos_;  // of open groups, lists and maps
  Json definitions_ = Json::object();
};

}  // namespace spillway
