// One description of a document's fields, walked by whatever reads, writes, lists or changes such documents.
//
// describe(object, visitor) names each field in file order; a visitor reads (field_reader.h), writes (field_writer.h),
// lists (field_rows.h), sets one by its path (field_setter.h) or makes a JSON Schema (field_schema.h). Adding a field
// means one member in the noun's header and one line in its description.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/units.h"
#include "base/words.h"

namespace spillway {

// Whether a text names something outside the document, seen from the document's folder.
enum class FieldPath : std::uint8_t { none, file, name_or_file };

struct FieldInfo {
  std::string_view key;
  Dimension dimension = Dimension::plain;
  double min = 0, max = std::numeric_limits<double>::infinity();  // closed, in base units
  std::string_view about{};                                       // a sentence for people
  std::string_view label{}, unit{};                               // as a form has them
  bool required = false;
  bool above_min = false;            // min itself is out
  bool below_max = false;            // max itself is out
  FieldPath path = FieldPath::none;  // of a text
  std::string_view pattern{};        // of a text: a regular expression; the noun's reader checks it
  std::size_t least_items = 0;       // of a list or a map
  std::string_view shorthand{};      // an element may be the text of this key alone
  bool as_tuple = false;             // a group, an element or an entry is an array of its fields in order
  bool as_value = false;             // an element is what its only field, with the empty key, is
  bool even_empty = false;           // of a text, a list or a map: it may be empty, and is written then too
  bool or_null = false;              // null stands for an infinite number, for a flag or a value that isn't known
  std::string_view alias{};          // an older name of the key, of a group
  std::string_view former{};         // an older name that is refused: the message names this one
  bool also_flag = false;            // a group: true stands for {}, false for none
};

// A value as --set takes it: a text, a number, true or false.
struct Scalar {
  std::string text;  // without quotes
  bool is_number = false;
  bool is_null = false;  // where FieldInfo::or_null
};

// What a document calls itself.
struct DocumentHead {
  std::string_view schema;
  std::int64_t version = 1;
  std::string_view noun;  // "a scenario", for messages
  bool is_version_required = true;
};

// An absent value is nullopt; a visitor that reads leaves it alone. Floors with values of another form derive
// from it (hwprofiles/fields.h: numbers with their origin).
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  // False: the field's value is of no interest; a description may then skip it.
  virtual bool wants(std::string_view) { return true; }

  virtual void head(const DocumentHead&) {}
  virtual void constant(const FieldInfo&, std::string_view) {}
  virtual void text(const FieldInfo&, std::optional<std::string>&) {}
  virtual void flag(const FieldInfo&, std::optional<bool>&) {}
  // One of the words by its place; a place behind the last one is none that a document can say.
  virtual void word(const FieldInfo&, std::optional<std::size_t>&, const Words&) {}
  // One of the words, or the path of a file that ends in ".json".
  virtual void word_or_file(const FieldInfo&, std::optional<std::string>&, const Words&) {}
  virtual void integer(const FieldInfo&, std::optional<std::int64_t>&) {}
  virtual void number(const FieldInfo&, std::optional<double>&) {}
  // A digest: a text of hexadecimal digits.
  virtual void hex(const FieldInfo&, std::optional<std::uint64_t>&) {}
  virtual void scalar(const FieldInfo&, std::optional<Scalar>&) {}
  // Any JSON object, as text: somebody else reads it.
  virtual void object(const FieldInfo&, std::optional<std::string>&) {}
  virtual void texts(const FieldInfo&, std::vector<std::string>&) {}
  virtual void word_list(const FieldInfo&, std::vector<std::size_t>&, const Words&) {}
  virtual void integers(const FieldInfo&, std::vector<std::int64_t>&) {}
  virtual void numbers(const FieldInfo&, std::vector<double>&) {}
  virtual void scalars(const FieldInfo&, std::vector<Scalar>&) {}

  // A nested object; false: it is absent, skip its fields.
  virtual bool begin_group(const FieldInfo&) { return true; }
  virtual void end_group() {}
  // A nested object that the noun has or has not.
  virtual bool begin_part(const FieldInfo& info, bool /*present*/) { return begin_group(info); }
  // An array of objects: the number of elements (`current` for visitors that only look).
  virtual std::size_t begin_list(const FieldInfo&, std::size_t current) { return current; }
  virtual void begin_element(std::size_t) {}
  virtual void end_element() {}
  virtual void end_list() {}
  // An object with keys of the user's own: these, in file order. Each entry is described after begin_entry: with the
  // fields of a group, or with a single one that has the empty key, the entry itself.
  virtual std::vector<std::string> begin_map(const FieldInfo&, std::vector<std::string> current) { return current; }
  virtual void begin_entry(const std::string&) {}
  virtual void end_entry() {}
  virtual void end_map() {}
  // An object that somebody else reads, from its text; its fields are known here.
  virtual void section(const FieldInfo& info, std::optional<std::string>& text,
                       const std::function<void(FieldVisitor&)>& describe_fields);
  // The object at hand may have keys beyond those described: they are somebody else's.
  virtual void others() {}
  // Or single values by keys that the noun's reader knows (FieldInfo::pattern), in file order; comes last.
  virtual void rest(const FieldInfo&, std::vector<std::pair<std::string, Scalar>>&) {}
  // Refuses the value of a field, or the object at hand (empty key).
  virtual void refuse(const FieldInfo&, const std::string& /*cause*/, const std::string& /*remedy*/) {}
  // A rule that a JSON Schema has for the object at hand beyond its fields; the noun's reader checks it.
  virtual void rule(std::string_view) {}
};

inline void FieldVisitor::section(const FieldInfo& info, std::optional<std::string>& /*text*/,
                                  const std::function<void(FieldVisitor&)>& describe_fields) {
  if (!begin_group(info)) return;
  describe_fields(*this);
  end_group();
}

// Fields of the types that nouns have. A visitor's value is stored only where it changed.
namespace fields {

inline void text(FieldVisitor& visitor, const FieldInfo& info, std::string& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::string> given;
  if (!value.empty()) given = value;
  visitor.text(info, given);
  value = given ? std::move(*given) : std::string();
}

inline void flag(FieldVisitor& visitor, const FieldInfo& info, bool& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<bool> given = value;
  visitor.flag(info, given);
  value = given.value_or(value);
}

// integer, Bytes, and optionals of them.
inline void integer(FieldVisitor& visitor, const FieldInfo& info, std::optional<std::int64_t>& value) {
  if (visitor.wants(info.key)) visitor.integer(info, value);
}
template <std::integral Integer>
void integer(FieldVisitor& visitor, const FieldInfo& info, Integer& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::int64_t> given = static_cast<std::int64_t>(value);
  visitor.integer(info, given);
  if (given) value = static_cast<Integer>(*given);
}
inline void bytes(FieldVisitor& visitor, const FieldInfo& info, Bytes& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::int64_t> given = value.count();
  visitor.integer(info, given);
  if (given) value = Bytes(*given);
}
inline void bytes(FieldVisitor& visitor, const FieldInfo& info, std::optional<Bytes>& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::int64_t> given;
  if (value) given = value->count();
  visitor.integer(info, given);
  if (given) value = Bytes(*given);
}
// 0 stands for what isn't given.
inline void integer_or_none(FieldVisitor& visitor, const FieldInfo& info, std::int64_t& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::int64_t> given;
  if (value != 0) given = value;
  visitor.integer(info, given);
  value = given.value_or(0);
}

inline void number(FieldVisitor& visitor, const FieldInfo& info, std::optional<double>& value) {
  if (visitor.wants(info.key)) visitor.number(info, value);
}
inline void number(FieldVisitor& visitor, const FieldInfo& info, double& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<double> given = value;
  visitor.number(info, given);
  value = given.value_or(value);
}

inline void hex(FieldVisitor& visitor, const FieldInfo& info, std::uint64_t& value) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::uint64_t> given = value;
  visitor.hex(info, given);
  value = given.value_or(value);
}

template <class Enum>
requires std::is_enum_v<Enum>
void word(FieldVisitor& visitor, const FieldInfo& info, Enum& value, const Words& words) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::size_t> given = static_cast<std::size_t>(value);
  visitor.word(info, given, words);
  if (given) value = static_cast<Enum>(*given);
}
template <class Enum>
requires std::is_enum_v<Enum>
void word(FieldVisitor& visitor, const FieldInfo& info, std::optional<Enum>& value, const Words& words) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::size_t> given;
  if (value) given = static_cast<std::size_t>(*value);
  visitor.word(info, given, words);
  if (given) value = static_cast<Enum>(*given);
}
// A word kept as its text; empty: not given.
inline void word(FieldVisitor& visitor, const FieldInfo& info, std::string& value, const Words& words) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::size_t> given = words.find(value);
  visitor.word(info, given, words);
  if (given && *given < words.size()) value = words[*given].name;
}

// Or the path of a file.
inline void word_or_file(FieldVisitor& visitor, const FieldInfo& info, std::string& value, const Words& words) {
  if (!visitor.wants(info.key)) return;
  std::optional<std::string> given;
  if (!value.empty()) given = value;
  visitor.word_or_file(info, given, words);
  value = given ? std::move(*given) : std::string();
}

template <class Item, class Describe>
void list(FieldVisitor& visitor, const FieldInfo& info, std::vector<Item>& items, Describe describe_item) {
  items.resize(visitor.begin_list(info, items.size()));
  for (std::size_t i = 0; i < items.size(); ++i) {
    visitor.begin_element(i);
    describe_item(items[i]);
    visitor.end_element();
  }
  visitor.end_list();
}

// `items`: a vector of pairs of name and value, or a map.
template <class Items, class Describe>
void map(FieldVisitor& visitor, const FieldInfo& info, Items& items, Describe describe_item) {
  std::vector<std::string> names;
  names.reserve(items.size());
  for (const auto& [name, item] : items) names.push_back(name);
  Items visited;
  for (const std::string& name : visitor.begin_map(info, std::move(names))) {
    typename Items::value_type::second_type item{};
    for (auto& [known, value] : items)
      if (known == name) item = std::move(value);
    visitor.begin_entry(name);
    describe_item(item);
    visitor.end_entry();
    visited.insert(visited.end(), typename Items::value_type(name, std::move(item)));
  }
  visitor.end_map();
  items = std::move(visited);
}

template <class Describe>
void group(FieldVisitor& visitor, const FieldInfo& info, Describe describe_fields) {
  if (!visitor.wants(info.key) || !visitor.begin_group(info)) return;
  describe_fields();
  visitor.end_group();
}
// Given as a group, or none. describe_part(Part&).
template <class Part, class Describe>
void part(FieldVisitor& visitor, const FieldInfo& info, std::optional<Part>& value, Describe describe_part) {
  if (!visitor.wants(info.key) || !visitor.begin_part(info, value.has_value())) return;
  if (!value) value.emplace();
  describe_part(*value);
  visitor.end_group();
}

}  // namespace fields
}  // namespace spillway
