#include "traces/formats/json_rows.h"

#include <set>
#include <utility>
#include <vector>

#include "base/input_error.h"

namespace spillway::traces {
namespace {

using Json = nlohmann::json;

constexpr std::size_t max_depth = 64;

class RowStream : public nlohmann::json_sax<Json> {
 public:
  RowStream(FileMemory& memory, const JsonRowHandler& on_row)
      : memory_(memory), file_(memory.file()), on_row_(on_row) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(std::int64_t value) override { return scalar(value); }
  bool number_unsigned(std::uint64_t value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool string(std::string& value) override {
    memory_.add(value.size());
    return scalar(std::move(value));
  }
  bool binary(Json::binary_t&) override { return true; }

  bool key(std::string& name) override {
    const bool is_new = open_.empty() ? top_keys_.insert(name).second : !open_.back().contains(name);
    if (!is_new)
      throw InputError(file_, "in \"" + top_key_ + "\"", "key '" + name + "' appears twice in one object",
                       "keep one of them");
    memory_.add(member_bytes + name.size());
    (open_.empty() ? top_key_ : keys_.back()) = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override {
    if (!in_root_) return in_root_ = true;
    return start(Json::object());
  }
  bool end_object() override {
    if (open_.empty()) return true;  // the root
    return end();
  }
  bool start_array(std::size_t) override {
    require_root();
    if (open_.empty() && !in_rows_) return in_rows_ = true;
    return start(Json::array());
  }
  bool end_array() override {
    if (open_.empty()) {
      in_rows_ = false;
      return true;
    }
    return end();
  }
  bool parse_error(std::size_t position, const std::string& token, const Json::exception&) override {
    const bool at_end = token.empty();
    throw InputError(file_, "byte " + std::to_string(position),
                     at_end ? "the JSON ends too early" : "the JSON is broken here", "record or export the file again");
  }

 private:
  void require_root() {
    if (!in_root_)
      throw InputError(file_, "byte 0", "the file does not hold a JSON object", "check that this is the right file");
  }
  bool scalar(Json value) {
    require_root();
    memory_.add(sizeof(Json));
    if (open_.empty()) {
      on_row_(top_key_, value);
    } else {
      put(std::move(value));
    }
    return true;
  }
  bool start(Json container) {
    require_root();
    if (open_.size() >= max_depth)
      throw InputError(file_, "in \"" + top_key_ + "\"", "nested deeper than 64 levels",
                       "check that this is the right file");
    memory_.add(container_bytes);
    open_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool end() {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    if (open_.empty()) {
      on_row_(top_key_, done);
    } else {
      put(std::move(done));
    }
    return true;
  }
  void put(Json value) {
    Json& parent = open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
    } else {
      parent[keys_.back()] = std::move(value);
    }
  }

  static constexpr std::uint64_t member_bytes = 80, container_bytes = 64;  // beside what is in them

  FileMemory& memory_;
  const std::string& file_;
  const JsonRowHandler& on_row_;
  std::string top_key_;
  std::set<std::string> top_keys_;
  std::vector<Json> open_;         // containers of the present row, outermost first
  std::vector<std::string> keys_;  // the latest key of each
  bool in_root_ = false;
  bool in_rows_ = false;
};

}  // namespace

void read_json_rows(std::string_view text, FileMemory& memory, const JsonRowHandler& on_row) {
  // The parser takes a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw InputError(memory.file(), "byte " + std::to_string(zero), "the JSON is broken here",
                     "record or export the file again");
  RowStream stream(memory, on_row);
  Json::sax_parse(text, &stream);
}

const Json& json_member(const Json& object, std::string_view key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string_view json_text(const Json& value) {
  return value.is_string() ? std::string_view(value.get_ref<const std::string&>()) : std::string_view();
}

}  // namespace spillway::traces
