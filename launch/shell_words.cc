#include "launch/shell_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <utility>

#include "launch/shell_tokens.h"

namespace spillway::launch {
namespace {

bool is_word_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }
bool is_variable_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

constexpr std::size_t word_letters = 32;  // that a word costs beside its own

struct Value {
  ShellVariable elements;
  bool is_list = false;  // each element stays a word of its own between quotes too
};

class Expander {
 public:
  Expander(std::string_view raw, std::int64_t line, const ShellScope& scope, bool splits)
      : raw_(raw), line_(line), scope_(scope), level_(scope.budget, line), splits_(splits) {}

  std::vector<ShellWord> take() {
    while (at_ < raw_.size()) step();
    end_word();
    return std::move(words_);
  }

 private:
  void step() {
    const char letter = raw_[at_];
    if (letter == '\\') {
      if (at_ + 1 < raw_.size()) add(raw_[at_ + 1]);
      at_ += 2;
    } else if (letter == '\'') {
      const std::size_t end = closing(raw_, at_);
      add(raw_.substr(at_ + 1, end - at_ - 2));
      at_ = end;
    } else if (letter == '"') {
      quoted();
    } else if (letter == '$' || letter == '`') {
      insert(dollar(), false);
    } else {
      add(letter);
      ++at_;
    }
  }

  void quoted() {
    const std::size_t end = closing(raw_, at_) - 1;
    is_begun_ = true;
    ++at_;
    while (at_ < end) {
      const char letter = raw_[at_];
      if (letter == '\\' && at_ + 1 < end &&
          std::string_view("\"\\$`\n").find(raw_[at_ + 1]) != std::string_view::npos) {
        if (raw_[at_ + 1] != '\n') add(raw_[at_ + 1]);
        at_ += 2;
      } else if (letter == '$' || letter == '`') {
        insert(dollar(), true);
      } else {
        add(letter);
        ++at_;
      }
    }
    at_ = end + 1;
  }

  // At a $ or `, past which it moves.
  Value dollar() {
    const std::size_t begin = at_;
    const auto unknown = [&](std::string name) {
      return Value{{{std::string(raw_.substr(begin, at_ - begin)), line_, std::move(name)}}};
    };
    if (raw_[at_] == '`') {
      at_ = closing(raw_, at_);
      return unknown(std::string(raw_.substr(begin, at_ - begin)));
    }
    ++at_;
    if (at_ >= raw_.size()) return {{{"$", line_}}};
    if (raw_[at_] == '(') {
      at_ = closing(raw_, at_);
      const std::string_view inner = raw_.substr(begin + 2, at_ - begin - 3);
      if (inner.starts_with('(') && inner.ends_with(')'))
        if (const auto number = shell_arithmetic(inner.substr(1, inner.size() - 2), line_, scope_))
          return {{{std::to_string(*number), line_}}};
      if (const auto number = expr(inner)) return {{{std::to_string(*number), line_}}};
      return unknown(std::string(raw_.substr(begin, at_ - begin)));
    }
    if (raw_[at_] == '{') {
      at_ = closing(raw_, at_);
      return braced(raw_.substr(begin + 2, at_ - begin - 3), unknown(""));
    }
    const std::size_t name = at_;
    if (is_variable_letter(raw_[at_]) && std::isdigit(static_cast<unsigned char>(raw_[at_])) == 0)
      while (at_ < raw_.size() && is_variable_letter(raw_[at_])) ++at_;
    else if (std::string_view("0123456789@*#?$!-").find(raw_[at_]) != std::string_view::npos)
      ++at_;
    else
      return {{{"$", line_}}};
    return named(raw_.substr(name, at_ - name), unknown(""));
  }

  // `expr 16 / 8`, whose star has a backslash.
  [[nodiscard]] std::optional<std::int64_t> expr(std::string_view command) const {
    constexpr std::string_view name = "expr ";
    if (!command.starts_with(name)) return std::nullopt;
    std::string plain(command.substr(name.size()));
    std::erase(plain, '\\');
    return shell_arithmetic(plain, line_, scope_);
  }

  // A variable's first element; `otherwise` with its name where nothing gives it a value.
  Value named(std::string_view name, Value otherwise) const {
    const auto found = scope_.variables.find(name);
    if (found == scope_.variables.end()) {
      otherwise.elements.front().unknown = name;
      return otherwise;
    }
    if (found->second.empty()) return {};
    return {{found->second.front()}};
  }

  // What stands between ${ and }.
  Value braced(std::string_view inner, Value otherwise) const {
    std::size_t length = 0;
    while (length < inner.size() && is_variable_letter(inner[length])) ++length;
    if (length == 0 && (inner.starts_with('@') || inner.starts_with('*'))) length = 1;
    const std::string_view name = inner.substr(0, length);
    const std::string_view rest = inner.substr(length);
    if (rest.empty() && length > 0) return named(name, std::move(otherwise));
    const auto found = scope_.variables.find(name);
    if (rest == "[@]" || rest == "[*]") {
      if (found == scope_.variables.end()) return named(name, std::move(otherwise));
      return {found->second, rest == "[@]"};
    }
    const bool also_empty = rest.starts_with(':');
    const std::string_view operation = rest.substr(also_empty ? 1 : 0);
    if (length > 0 && !operation.empty() &&
        std::string_view("-=+?").find(operation.front()) != std::string_view::npos) {
      bool is_set = found != scope_.variables.end();
      if (is_set && also_empty) is_set = !found->second.empty() && !found->second.front().text.empty();
      if (operation.front() == '?') return named(name, std::move(otherwise));
      if ((operation.front() == '+') == is_set) {
        ShellWord word = expand_whole(operation.substr(1), line_, scope_);
        return {{std::move(word)}};
      }
      if (operation.front() == '+') return {};
      return named(name, std::move(otherwise));
    }
    otherwise.elements.front().unknown = name.empty() ? inner : name;
    return otherwise;
  }

  void insert(const Value& value, bool is_quoted) {
    for (const ShellWord& element : value.elements)
      scope_.budget.spend(word_letters + element.text.size() + element.unknown.size(), line_);
    if (is_quoted || !splits_) {
      for (std::size_t i = 0; i < value.elements.size(); ++i) {
        if (i > 0) value.is_list&& splits_ ? end_word() : add(' ');
        const ShellWord& element = value.elements[i];
        append(element.text, element.line, element.unknown);
      }
      if (value.is_list && value.elements.empty() && current_.text.empty()) is_begun_ = false;
      return;
    }
    for (std::size_t i = 0; i < value.elements.size(); ++i) {
      if (i > 0) end_word();
      const ShellWord& element = value.elements[i];
      if (element.unknown.empty())
        insert_split(element, element.text);
      else
        insert_unknown(element);
    }
  }

  // Known letters, split at blanks.
  void insert_split(const ShellWord& element, std::string_view letters) {
    for (const char letter : letters) {
      if (is_word_blank(letter)) {
        end_word();
        continue;
      }
      if (!is_begun_) current_.line = element.line;
      add(letter);
    }
  }

  // What isn't known stands as it is written, and is not split; what stands around it is.
  void insert_unknown(const ShellWord& element) {
    const std::string_view text = element.text;
    for (std::size_t at = 0; at < text.size();) {
      const bool is_group =
          text[at] == '`' || (text[at] == '$' && at + 1 < text.size() && (text[at + 1] == '(' || text[at + 1] == '{'));
      std::size_t end = at + 1;
      if (is_group) {
        end = std::min(closing(text, text[at] == '`' ? at : at + 1), text.size());
      } else if (text[at] == '$') {
        while (end < text.size() && is_variable_letter(text[end])) ++end;
      }
      if (end == at + 1 && text[at] != '$')
        insert_split(element, text.substr(at, 1));
      else
        append(text.substr(at, end - at), element.line, element.unknown);
      at = end;
    }
  }

  void append(std::string_view text, std::int64_t line, const std::string& unknown) {
    if (!is_begun_) current_.line = line;
    is_begun_ = true;
    current_.text += text;
    if (current_.unknown.empty()) current_.unknown = unknown;
  }
  void add(char letter) { add(std::string_view(&letter, 1)); }
  void add(std::string_view letters) {
    if (!is_begun_ && current_.line == 0) current_.line = line_;
    is_begun_ = true;
    current_.text += letters;
  }
  void end_word() {
    if (is_begun_) {
      scope_.budget.spend(word_letters + current_.text.size(), line_);
      if (current_.line == 0) current_.line = line_;
      words_.push_back(std::move(current_));
    }
    current_ = {};
    is_begun_ = false;
  }

  [[nodiscard]] std::size_t closing(std::string_view text, std::size_t at) const {
    return shell_closing(text, at, line_, scope_.budget);
  }

  std::string_view raw_;
  std::int64_t line_;
  const ShellScope& scope_;
  TextBudget::Level level_;
  bool splits_;
  std::size_t at_ = 0;
  ShellWord current_{};
  bool is_begun_ = false;  // an empty word between quotes is a word
  std::vector<ShellWord> words_;
};

class Arithmetic {
 public:
  Arithmetic(std::string_view text, std::int64_t line, const ShellScope& scope)
      : text_(text), line_(line), scope_(scope) {}

  std::optional<std::int64_t> value() {
    const auto result = choice();
    blanks();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  using Number = std::optional<std::int64_t>;

  void blanks() {
    while (at_ < text_.size() && is_word_blank(text_[at_])) ++at_;
  }
  bool takes(char letter) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  static Number apply(char operation, Number left, Number right) {
    std::int64_t result = 0;
    if (!left || !right) return std::nullopt;
    switch (operation) {
      case '+':
        return __builtin_add_overflow(*left, *right, &result) ? Number() : Number(result);
      case '-':
        return __builtin_sub_overflow(*left, *right, &result) ? Number() : Number(result);
      case '*':
        return __builtin_mul_overflow(*left, *right, &result) ? Number() : Number(result);
      default:
        if (*right == 0 || *right == -1) return std::nullopt;
        return operation == '/' ? *left / *right : *left % *right;
    }
  }
  bool takes(std::string_view sign) {
    blanks();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  // a ? b : c, with either branch read and one taken
  Number choice() {
    const Number condition = either();
    if (!takes('?')) return condition;
    const TextBudget::Level level(scope_.budget, line_);
    const Number yes = choice();
    if (!takes(':')) return std::nullopt;
    const Number no = choice();
    if (!condition) return std::nullopt;
    return *condition != 0 ? yes : no;
  }
  Number either() {
    Number result = both();
    while (takes("||")) {
      const Number right = both();
      result = result && right ? Number(*result != 0 || *right != 0) : std::nullopt;
    }
    return result;
  }
  Number both() {
    Number result = comparison();
    while (takes("&&")) {
      const Number right = comparison();
      result = result && right ? Number(*result != 0 && *right != 0) : std::nullopt;
    }
    return result;
  }
  Number comparison() {
    const Number left = sum();
    const auto compare = [&](auto holds) {
      const Number right = sum();
      return left && right ? Number(holds(*left, *right)) : std::nullopt;
    };
    if (takes("==")) return compare(std::equal_to<>());
    if (takes("!=")) return compare(std::not_equal_to<>());
    if (takes("<=")) return compare(std::less_equal<>());
    if (takes(">=")) return compare(std::greater_equal<>());
    if (takes('<')) return compare(std::less<>());
    if (takes('>')) return compare(std::greater<>());
    return left;
  }
  Number sum() {
    Number result = product();
    while (true) {
      if (takes('+'))
        result = apply('+', result, product());
      else if (takes('-'))
        result = apply('-', result, product());
      else
        return result;
    }
  }
  Number product() {
    Number result = factor();
    while (true) {
      if (takes('*'))
        result = apply('*', result, factor());
      else if (takes('/'))
        result = apply('/', result, factor());
      else if (takes('%'))
        result = apply('%', result, factor());
      else
        return result;
    }
  }
  Number factor() {
    const TextBudget::Level level(scope_.budget, line_);
    if (takes('-')) return apply('-', 0, factor());
    if (takes('(')) {
      const Number inner = choice();
      return takes(')') ? inner : std::nullopt;
    }
    blanks();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '$') {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '{' || text_[at_] == '('))
        at_ = std::min(shell_closing(text_, at_, line_, scope_.budget), text_.size());
    }
    while (at_ < text_.size() && is_variable_letter(text_[at_])) ++at_;
    std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) return number(word);
    const std::string raw = word.front() == '$' ? std::string(word) : "$" + std::string(word);
    const ShellWord value = expand_whole(raw, line_, scope_);
    return value.unknown.empty() ? number(value.text) : std::nullopt;
  }
  static Number number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? Number(value) : std::nullopt;
  }

  std::string_view text_;
  std::int64_t line_;
  const ShellScope& scope_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<ShellWord> expand(std::string_view raw, std::int64_t line, const ShellScope& scope) {
  return Expander(raw, line, scope, true).take();
}

ShellWord expand_whole(std::string_view raw, std::int64_t line, const ShellScope& scope) {
  std::vector<ShellWord> words = Expander(raw, line, scope, false).take();
  if (words.empty()) return {"", line};
  words.front().line = line;
  return std::move(words.front());
}

std::optional<std::int64_t> shell_arithmetic(std::string_view expression, std::int64_t line, const ShellScope& scope) {
  return Arithmetic(expression, line, scope).value();
}

}  // namespace spillway::launch
