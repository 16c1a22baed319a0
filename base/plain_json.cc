#include "base/plain_json.h"

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Each function reads from at_ on and moves it behind what it read; false: this is for the full parser.
class PlainParser {
 public:
  PlainParser(std::string_view text, int deepest)
      : at_(text.data()), end_(text.data() + text.size()), deepest_(deepest) {}

  bool document(Json& root) {
    skip_space();
    if (!value(root, 0)) return false;
    skip_space();
    return at_ == end_;
  }

  // As far as that key of the outermost object.
  bool head(Json& root, std::string_view key) {
    last_key_ = key;
    skip_space();
    return value(root, 0) && is_cut_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool take(char wanted) {
    skip_space();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }

  bool take(std::string_view word) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool value(Json& into, int depth) {
    if (at_ == end_) return false;
    switch (*at_) {
      case '{':
        return depth < deepest_ && object(into, depth + 1);
      case '[':
        return depth < deepest_ && array(into, depth + 1);
      case '"': {
        std::string_view text;
        if (!string(text)) return false;
        into = text;
        return true;
      }
      case 't':
        into = true;
        return take("true");
      case 'f':
        into = false;
        return take("false");
      case 'n':
        into = nullptr;
        return take("null");
      default:
        return number([&into](auto read) { into = read; });
    }
  }

  bool object(Json& into, int depth) {
    constexpr std::size_t usual_keys = 8, wide = 64;
    into = Json::object();
    auto& members = into.get_ref<Json::object_t&>();
    ++at_;
    if (take('}')) return true;
    members.reserve(usual_keys);
    std::unordered_set<std::string> seen;  // of an object too wide to be looked through for each key
    do {
      skip_space();
      std::string_view key;
      if (!string(key) || !take(':')) return false;
      if (depth == 1 && key == last_key_) return is_cut_ = true;
      if (members.size() == members.capacity()) widen(members);
      if (members.size() == wide)
        for (const auto& [known, unused] : members) seen.insert(known);
      if (members.size() < wide ? members.find(key) != members.end() : !seen.emplace(key).second) return false;
      Json& member = members.emplace_back(std::string(key), Json()).second;
      skip_space();
      if (!value(member, depth)) return false;
    } while (take(','));
    return take('}');
  }

  // Keys are constant, so that a list of members which grows by itself copies them with all their values.
  static void widen(Json::object_t& members) {
    Json::object_t wider;
    wider.reserve(2 * members.size());
    for (auto& [key, value] : members) wider.emplace_back(key, std::move(value));
    members.swap(wider);
  }

  bool array(Json& into, int depth) {
    into = Json::array();
    auto& items = into.get_ref<Json::array_t&>();
    ++at_;
    if (take(']')) return true;
    skip_space();
    if (begins_number()) items.reserve(commas_before_bracket() + 1);
    do {
      skip_space();
      if (short_integer(items)) continue;
      if (begins_number() ? !number([&items](auto read) { items.emplace_back(read); })
                          : !value(items.emplace_back(), depth))
        return false;
    } while (take(','));
    return take(']');
  }

  [[nodiscard]] bool begins_number() const { return at_ != end_ && (is_digit(*at_) || *at_ == '-'); }

  // Most of what tables consist of; false and nothing read: another value, or one that needs a closer look.
  bool short_integer(Json::array_t& items) {
    constexpr std::ptrdiff_t most_digits = 18;  // that no sum below overflows with
    const char* at = at_;
    const bool is_negative = at != end_ && *at == '-';
    if (is_negative) ++at;
    const char* const digits = at;
    std::uint64_t sum = 0;
    for (; at != end_ && is_digit(*at); ++at) sum = 10 * sum + static_cast<std::uint64_t>(*at - '0');
    if (at == digits || at - digits > most_digits || at == end_ || (*at != ',' && *at != ']')) return false;
    if (*digits == '0' && at - digits > 1) return false;
    if (is_negative)
      items.emplace_back(-static_cast<std::int64_t>(sum));
    else
      items.emplace_back(sum);
    at_ = at;
    return true;
  }

  // One less than the values of a list of numbers; of lists that begin with one and go on otherwise something else.
  [[nodiscard]] std::size_t commas_before_bracket() const {
    std::size_t commas = 0;
    for (const char* at = at_; at != end_ && *at != ']' && *at != '[' && *at != '{'; ++at)
      commas += *at == ',' ? 1U : 0U;
    return commas;
  }

  bool string(std::string_view& text) {
    if (at_ == end_ || *at_ != '"') return false;
    const char* const begin = ++at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ < ' ' || *at_ > '~' || *at_ == '\\') return false;
      ++at_;
    }
    if (at_ == end_) return false;
    text = {begin, static_cast<std::size_t>(at_ - begin)};
    ++at_;
    return true;
  }

  template <class Store>
  bool number(const Store& store) {
    const char* const begin = at_;
    const bool is_negative = *at_ == '-';
    if (is_negative) ++at_;
    const char* const digits = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    if (at_ == digits || (*digits == '0' && at_ - digits > 1)) return false;
    if (at_ == end_ || (*at_ != '.' && *at_ != 'e' && *at_ != 'E'))
      return is_negative ? converted<std::int64_t>(begin, store) : converted<std::uint64_t>(begin, store);
    if (*at_ == '.' && !skip_digits_after(at_ + 1)) return false;
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      const char* exponent = at_ + 1;
      if (exponent != end_ && (*exponent == '+' || *exponent == '-')) ++exponent;
      if (!skip_digits_after(exponent)) return false;
    }
    return converted<double>(begin, store);
  }

  bool skip_digits_after(const char* first) {
    at_ = first;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  }

  // What is out of range is another kind of number to the full parser, or none.
  template <class Number, class Store>
  bool converted(const char* begin, const Store& store) const {
    Number number{};
    const auto [rest, error] = std::from_chars(begin, at_, number);
    store(number);
    return error == std::errc() && rest == at_;
  }

  const char* at_;
  const char* end_;
  int deepest_;
  std::optional<std::string_view> last_key_;  // of the outermost object; none: all of it is read
  bool is_cut_ = false;                       // there
};

}  // namespace

bool parse_plain_json(std::string_view text, int deepest, Json& root) {
  return PlainParser(text, deepest).document(root);
}

bool parse_plain_json_before(std::string_view key, std::string_view text, int deepest, Json& root) {
  return PlainParser(text, deepest).head(root, key);
}

void clear_json(Json& json) {
  if (!json.is_structured()) return;
  if (json.is_array()) {
    for (Json& each : json.get_ref<Json::array_t&>())
      if (each.is_structured()) clear_json(each);
  } else {
    for (auto& [key, value] : json.get_ref<Json::object_t&>()) clear_json(value);
  }
  json.clear();
}

}  // namespace spillway
