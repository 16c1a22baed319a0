// FieldVisitor that reads a JSON object, gathering every problem: keys nobody described, values of another type, out of
// range or no word of the list. The one place that takes keys out of our own documents.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"

namespace spillway {

struct FieldProblem {
  std::string place, cause, remedy;  // place: JSON pointer
  int rank = 2;                      // of which to tell first: 0 another document, 1 an unknown key, 2 all else
};

class FieldReader : public virtual FieldVisitor {
 public:
  using Json = nlohmann::ordered_json;

  // `object` and `problems` must outlive the reader. `place`: of the object in its document.
  FieldReader(const Json& object, std::vector<FieldProblem>& problems, std::string place = "");

  // Keys that are read elsewhere.
  void ignore(std::initializer_list<std::string_view> keys);
  // A key left unread is a problem with the nearest known ones; call once at the end.
  void finish();
  void problem(const std::string& place, std::string cause, std::string remedy, int rank = 2);
  // Whether what it reads is one at all.
  [[nodiscard]] bool is_object() const;
  // Whether the document has a value at the JSON pointer.
  [[nodiscard]] bool gave(std::string_view place) const;

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
  void section(const FieldInfo& info, std::optional<std::string>& text,
               const std::function<void(FieldVisitor&)>& describe_fields) override;
  bool begin_group(const FieldInfo& info) override;
  void end_group() override { pop(); }
  std::size_t begin_list(const FieldInfo& info, std::size_t current) override;
  void begin_element(std::size_t index) override;
  void end_element() override { pop(); }
  void end_list() override { lists_.pop_back(); }
  std::vector<std::string> begin_map(const FieldInfo& info, std::vector<std::string> current) override;
  void begin_entry(const std::string& name) override;
  void end_entry() override { pop(); }
  void end_map() override { lists_.pop_back(); }
  void refuse(const FieldInfo& info, const std::string& cause, const std::string& remedy) override {
    problem(place_of(info.key), cause, remedy);
  }
  void others() override { frames_.back().has_others = true; }
  void rest(const FieldInfo& info, std::vector<std::pair<std::string, Scalar>>& values) override;

 protected:
  const Json* take(const FieldInfo& info);  // null when absent, which is a problem where it is required
  [[nodiscard]] std::string place_of(std::string_view key) const;
  using FormerKeys = std::vector<std::pair<std::string_view, std::string_view>>;  // refused name, today's
  void check_keys(const Json& object, const std::vector<std::string_view>& known, const std::string& place,
                  const FormerKeys& former = {});
  [[nodiscard]] const Json& current() const { return *frames_.back().object; }

 private:
  // An object that is being read, and the way to it from the frame around it. Places are put together for a problem
  // alone: a plan has a million elements, and they are sound.
  struct Frame {
    const Json* object;
    std::string_view key{};              // in the frame around it; empty: that frame's own value
    std::optional<std::size_t> index{};  // of an element
    std::string_view entry{};            // of a map
    bool as_tuple = false, has_others = false, is_whole = false;
    std::string_view shorthand{};  // the key that a bare text stands for
    std::vector<std::string> used{};
    FormerKeys former{};
    std::size_t next = 0;  // of a tuple
  };
  struct List {
    const Json* items;
    FieldInfo info;
    std::size_t next = 0;  // of a map's, in file order
  };

  // The list at a key; null where there is none.
  const Json* take_list(const FieldInfo& info, const char* of);
  void push(Frame frame) { frames_.push_back(std::move(frame)); }
  void pop();
  void push_group(const FieldInfo& info, const Json& object);
  [[nodiscard]] std::string place_of_frame(std::size_t depth) const;
  [[nodiscard]] std::string place_within(std::size_t depth, std::string_view key) const;
  [[nodiscard]] std::string place_of_item(const FieldInfo& info, std::size_t index) const;
  bool is_scalar(const Json& value, const FieldInfo& info, Scalar& scalar);
  bool is_word(const Json& value, const FieldInfo& info, const Words& words, const std::string& place,
               std::size_t& word);
  void refuse_range(const FieldInfo& info, const std::string& place, const char* noun);

  std::vector<FieldProblem>& problems_;
  const Json& root_;
  std::string root_place_;
  std::vector<Frame> frames_;
  std::vector<List> lists_;
};

// The problem to tell first, as InputError; nothing where there are none.
void throw_first(const std::vector<FieldProblem>& problems, const std::string& file);

// Reads what describe(object, reader) names out of `root`. Throws InputError (file, JSON pointer).
template <class Describe>
void read_fields(const nlohmann::ordered_json& root, const std::string& file, const std::string& place,
                 Describe describe_fields) {
  std::vector<FieldProblem> problems;
  FieldReader reader(root, problems, place);
  describe_fields(static_cast<FieldVisitor&>(reader));
  if (!reader.is_object()) reader.problem(place, "expected an object", "write { ... }", 0);
  reader.finish();
  throw_first(problems, file);
}

// The same of the document in `text`, for those who need not see it as JSON. `remedy` of what is no JSON.
void read_document(std::string_view text, const std::string& file,
                   const std::function<void(FieldVisitor&)>& describe_fields,
                   const std::string& remedy = "correct the syntax there");

// The document in `text`. Throws InputError where it is not JSON, or says one key twice; `remedy` may tell more.
nlohmann::ordered_json parse_document(std::string_view text, const std::string& file,
                                      const std::string& remedy = "correct the syntax there");
// The text at a key of the document; empty: there is none, or it is no JSON.
std::string document_text(std::string_view text, std::string_view key);
// What a document calls itself.
inline std::string document_schema(std::string_view text) { return document_text(text, "schema"); }

}  // namespace spillway
