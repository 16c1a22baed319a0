#include "launch/python_calls.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "base/input_error.h"
#include "launch/launch_table.h"

namespace spillway::launch {
namespace {

constexpr std::size_t python_token_letters = 32;  // that a token costs beside its own

enum class PythonTokenKind : std::uint8_t { name, number, text, sign, line_end };

struct PythonToken {
  PythonTokenKind kind = PythonTokenKind::sign;
  std::string text;
  std::int64_t line = 0;
  bool is_known = true;  // false: a text with expressions in it
};

bool is_python_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

class PythonTokens {
 public:
  PythonTokens(std::string_view text, TextBudget& budget) : text_(text), budget_(budget) {}

  std::vector<PythonToken> take() {
    while (at_ < text_.size()) step();
    if (depth_ > 0) fail("a bracket has no end");
    add(PythonTokenKind::line_end, "");
    return std::move(tokens_);
  }

 private:
  void step() {
    const char letter = text_[at_];
    if (letter == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (letter == '\n' || letter == ';') {
      if (depth_ == 0) add(PythonTokenKind::line_end, "");
      if (letter == '\n') ++line_;
      ++at_;
    } else if (letter == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      at_ += 2;
      ++line_;
    } else if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
      ++at_;
    } else if (letter == '"' || letter == '\'') {
      quoted(false, false);
    } else if (std::isdigit(static_cast<unsigned char>(letter)) != 0) {
      number();
    } else if (is_python_letter(letter)) {
      name();
    } else {
      sign(letter);
    }
  }

  void sign(char letter) {
    if (letter == '(' || letter == '[' || letter == '{') budget_.check_depth(++depth_, line_);
    if (letter == ')' || letter == ']' || letter == '}') --depth_;
    if (depth_ < 0) fail("a bracket ends that doesn't begin");
    const std::string_view two = text_.substr(at_, 2);
    const std::size_t length = two == "**" || two == "//" || two == "==" ? 2 : 1;
    add(PythonTokenKind::sign, std::string(text_.substr(at_, length)));
    at_ += length;
  }

  void number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_python_letter(text_[at_]) || text_[at_] == '.' ||
                                  ((text_[at_] == '-' || text_[at_] == '+') && std::tolower(text_[at_ - 1]) == 'e')))
      ++at_;
    add(PythonTokenKind::number, std::string(text_.substr(begin, at_ - begin)));
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_python_letter(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    const bool is_prefix = word.size() <= 2 && at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') &&
                           word.find_first_not_of("rRbBuUfF") == std::string_view::npos;
    if (is_prefix) return quoted(word.find_first_of("rR") != word.npos, word.find_first_of("fF") != word.npos);
    add(PythonTokenKind::name, std::string(word));
  }

  void quoted(bool is_raw, bool is_formatted) {
    const std::int64_t line = line_;
    const std::string three(3, text_[at_]);
    const bool is_long = text_.substr(at_).starts_with(three);
    const std::string end = is_long ? three : three.substr(2);
    std::string inner;
    for (at_ += end.size(); at_ < text_.size() && !text_.substr(at_).starts_with(end); ++at_) {
      if (text_[at_] == '\n' && !is_long) break;
      if (text_[at_] == '\\' && !is_raw && at_ + 1 < text_.size()) ++at_;
      if (text_[at_] == '\n') ++line_;
      inner += text_[at_];
    }
    if (!text_.substr(std::min(at_, text_.size())).starts_with(end)) fail("a quote has no end");
    at_ += end.size();
    const bool is_known = !is_formatted || inner.find('{') == std::string::npos;
    add(PythonTokenKind::text, std::move(inner));
    tokens_.back().line = line;
    tokens_.back().is_known = is_known;
  }

  void add(PythonTokenKind kind, std::string text) {
    budget_.spend(python_token_letters + text.size(), line_);
    tokens_.push_back({kind, std::move(text), line_});
  }

  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(budget_.file(), "line " + std::to_string(line_), cause, "correct it: Python would refuse it too");
  }

  std::string_view text_;
  TextBudget& budget_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  int depth_ = 0;
  std::vector<PythonToken> tokens_;
};

// What an expression stands for: one value, or a dict's members by their names.
struct PythonValue {
  std::string text;
  bool is_known = true, is_null = false, is_dict = false;
  std::vector<std::pair<std::string, PythonValue>> members{};
};

// Letters that a copy costs.
std::size_t letters_of(const PythonValue& value) {
  std::size_t sum = python_token_letters + value.text.size();
  for (const auto& [name, member] : value.members) sum += name.size() + letters_of(member);
  return sum;
}

PythonValue unknown_value(std::string text) { return {.text = std::move(text), .is_known = false}; }

class PythonReader {
 public:
  PythonReader(std::string_view text, const ShellValues& given, TextBudget& budget)
      : budget_(budget), given_(given), tokens_(PythonTokens(text, budget).take()) {}

  std::vector<PythonCall> take() {
    while (at_ < tokens_.size()) statement();
    return std::move(calls_);
  }

 private:
  using Kind = PythonTokenKind;

  [[nodiscard]] const PythonToken& token(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  [[nodiscard]] bool is_sign(std::string_view text, std::size_t ahead = 0) const {
    return token(ahead).kind == Kind::sign && token(ahead).text == text;
  }

  // NAME = value binds the name, NAME, NAME = value, value each of them; of anything else the calls count.
  void statement() {
    std::vector<std::string> names;
    std::size_t ahead = 0;
    for (; token(ahead).kind == Kind::name; ahead += 2) {
      names.push_back(token(ahead).text);
      if (!is_sign(",", ahead + 1)) break;
    }
    if (!names.empty() && is_sign("=", ahead + 1)) {
      at_ += ahead + 1;
      for (const std::string& name : names) {
        if (!is_sign("=") && !is_sign(",")) break;
        ++at_;
        bind(name, value());
      }
    }
    while (at_ < tokens_.size() && token().kind != Kind::line_end) part();
    ++at_;
  }

  void bind(const std::string& name, PythonValue value) {
    const auto [place, is_new] = names_.try_emplace(name, value);
    if (!is_new && (place->second.text != value.text || value.is_dict)) place->second = unknown_value(name);
  }

  // A token of no interest, or a call with all that it has.
  void part() {
    if (token().kind == Kind::name)
      static_cast<void>(named());
    else
      ++at_;
  }

  // Up to a comma, a closing bracket or the line's end, which stay.
  [[nodiscard]] bool is_end() const {
    if (token().kind == Kind::line_end) return true;
    return is_sign(",") || is_sign(")") || is_sign("]") || is_sign("}") || is_sign(":") || is_sign("=");
  }

  PythonValue value() {
    const std::size_t begin = at_;
    const TextBudget::Level level(budget_, token().line);
    PythonValue made = product();
    if (is_end() && made.is_known) return made;
    while (!is_end()) skip();
    const std::string written = text_from(begin);
    if (const auto found = given_.find(written); found != given_.end()) return {.text = found->second};
    return unknown_value(written);
  }

  // One token, or a bracket with what is in it.
  void skip() {
    const bool opens = is_sign("(") || is_sign("[") || is_sign("{");
    if (!opens) return part();
    const TextBudget::Level level(budget_, token().line);
    ++at_;
    while (at_ < tokens_.size() && !is_sign(")") && !is_sign("]") && !is_sign("}"))
      if (is_sign("(") || is_sign("[") || is_sign("{"))
        skip();
      else
        part();
    ++at_;
  }

  [[nodiscard]] std::string text_from(std::size_t begin) {
    std::string text;
    for (std::size_t i = begin; i < at_ && i < tokens_.size(); ++i) text += tokens_[i].text;
    budget_.spend(text.size(), token().line);
    constexpr std::size_t most = 200;
    return text.substr(0, most);
  }

  PythonValue product() {
    PythonValue left = primary();
    while (is_sign("*") && left.is_known) {
      ++at_;
      const PythonValue right = primary();
      const auto a = whole_number(left.text), b = right.is_known ? whole_number(right.text) : std::nullopt;
      std::int64_t number = 0;
      if (!a || !b || __builtin_mul_overflow(*a, *b, &number)) return unknown_value(left.text + "*" + right.text);
      left.text = std::to_string(number);
    }
    return left;
  }

  PythonValue primary() {
    const PythonToken& first = token();
    if (first.kind == Kind::text) return texts();
    if (first.kind == Kind::number) {
      ++at_;
      return {.text = first.text};
    }
    if (first.kind == Kind::name && first.text == "not") {
      ++at_;
      PythonValue of = primary();
      if (of.is_known && (of.text == "true" || of.text == "false"))
        return {.text = of.text == "true" ? "false" : "true"};
      return unknown_value("not " + of.text);
    }
    if (first.kind == Kind::name) return named();
    if (is_sign("-") && token(1).kind == Kind::number) {
      at_ += 2;
      return {.text = "-" + tokens_[at_ - 1].text};
    }
    if (is_sign("[") || is_sign("(")) return listed();
    if (is_sign("{")) return dict();
    if (!is_end()) ++at_;
    return unknown_value(first.text);
  }

  // Several, one behind the other, are one.
  PythonValue texts() {
    PythonValue made;
    for (; token().kind == Kind::text; ++at_) {
      made.text += token().text;
      made.is_known = made.is_known && token().is_known;
    }
    return made;
  }

  PythonValue listed() {
    const TextBudget::Level level(budget_, token().line);
    PythonValue made;
    ++at_;
    while (at_ < tokens_.size() && !is_sign("]") && !is_sign(")")) {
      const PythonValue item = value();
      made.is_known = made.is_known && item.is_known;
      made.text += (made.text.empty() ? "" : ",") + item.text;
      budget_.spend(made.text.size(), token().line);
      if (!is_sign("]") && !is_sign(")")) skip();  // a comma, or of what is no list
    }
    ++at_;
    return made;
  }

  PythonValue dict() {
    const TextBudget::Level level(budget_, token().line);
    PythonValue made{.is_dict = true};
    ++at_;
    while (at_ < tokens_.size() && !is_sign("}")) {
      PythonValue key = value();
      if (is_sign(":")) {
        ++at_;
        made.members.emplace_back(std::move(key.text), value());
      }
      while (at_ < tokens_.size() && !is_sign(",") && !is_sign("}")) skip();
      if (is_sign(",")) ++at_;
    }
    ++at_;
    return made;
  }

  // A name with its dots: a constant, what it is bound to, or a call.
  PythonValue named() {
    std::string name = token().text;
    const std::int64_t line = token().line;
    for (++at_; is_sign(".") && token(1).kind == Kind::name; at_ += 2) name += "." + token(1).text;
    if (is_sign("(")) return called(name, line);
    if (name == "True" || name == "False") return {.text = name == "True" ? "true" : "false"};
    if (name == "None") return {.text = "None", .is_null = true};
    if (name.starts_with("torch.")) return {.text = name.substr(6)};
    if (const auto found = given_.find(name); found != given_.end()) return {.text = found->second};
    if (const auto found = names_.find(name); found != names_.end()) {
      budget_.spend(letters_of(found->second), line);
      return found->second;
    }
    return unknown_value(name);
  }

  PythonValue called(const std::string& name, std::int64_t line) {
    const TextBudget::Level level(budget_, line);
    const std::size_t place = calls_.size();
    calls_.push_back({.name = name, .line = line, .arguments = {}});
    PythonValue members{.is_dict = true};
    std::vector<PythonArgument> arguments;
    for (++at_; at_ < tokens_.size() && !is_sign(")");) {
      const std::int64_t argument_line = token().line;
      std::string keyword;
      if (is_sign("**")) {
        ++at_;
      } else if (token().kind == Kind::name && is_sign("=", 1)) {
        keyword = token().text;
        at_ += 2;
      }
      PythonValue of = value();
      add_argument(arguments, keyword, of, argument_line);
      members.members.emplace_back(std::move(keyword), std::move(of));
      while (at_ < tokens_.size() && !is_sign(",") && !is_sign(")")) skip();  // a comprehension
      if (is_sign(",")) ++at_;
    }
    ++at_;
    bind_parsed(name, arguments);
    calls_[place].arguments = std::move(arguments);
    if (name == "dict") return members;
    // What every GPU since Ampere answers.
    if (name.ends_with("is_bfloat16_supported") || name.ends_with("is_bf16_supported")) return {.text = "true"};
    return unknown_value(name + "(...)");
  }

  void add_argument(std::vector<PythonArgument>& into, const std::string& name, const PythonValue& value,
                    std::int64_t line) {
    if (value.is_dict) {
      for (const auto& [key, member] : value.members) {
        std::string whole = name;
        whole.append(name.empty() ? "" : ".").append(key);
        add_argument(into, whole, member, line);
      }
      return;
    }
    budget_.spend(python_token_letters + name.size() + value.text.size(), line);
    into.push_back({name, value.text, line, value.is_known, value.is_null});
  }

  // parser.add_argument("--lr", default=2): args.lr is 2.
  void bind_parsed(const std::string& name, const std::vector<PythonArgument>& arguments) {
    if (!name.ends_with(".add_argument") || arguments.empty() || !arguments.front().value.starts_with("--")) return;
    std::string parsed = "args." + arguments.front().value.substr(2);
    std::replace(parsed.begin(), parsed.end(), '-', '_');
    for (const PythonArgument& each : arguments)
      if (each.name == "default")
        bind(parsed, {.text = each.value, .is_known = each.is_known, .is_null = each.is_null});
  }

  TextBudget& budget_;
  const ShellValues& given_;
  std::vector<PythonToken> tokens_;
  std::size_t at_ = 0;
  std::map<std::string, PythonValue, std::less<>> names_;
  std::vector<PythonCall> calls_;
};

}  // namespace

std::vector<PythonCall> python_calls(std::string_view text, const ShellValues& given, TextBudget& budget) {
  return PythonReader(text, given, budget).take();
}

}  // namespace spillway::launch
