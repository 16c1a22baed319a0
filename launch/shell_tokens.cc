#include "launch/shell_tokens.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/input_error.h"

namespace spillway::launch {
namespace {

bool is_name_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }
bool is_blank(char letter) { return letter != '\n' && std::isspace(static_cast<unsigned char>(letter)) != 0; }

constexpr std::size_t token_letters = 8;  // that a token costs beside its own

struct HereDocument {
  std::string mark;
  bool is_quoted = false;
};

class Tokenizer {
 public:
  Tokenizer(std::string_view text, TextBudget& budget) : text_(text), budget_(budget) {}

  std::vector<ShellToken> take() {
    while (at_ < text_.size()) step();
    add(ShellTokenKind::end);
    return std::move(tokens_);
  }

 private:
  void step() {
    const char letter = text_[at_];
    if (is_blank(letter)) {
      ++at_;
    } else if (letter == '\\' && next() == '\n') {
      at_ += 2;
      ++line_;
    } else if (letter == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (letter == '\n') {
      ++at_;
      const std::vector<HereDocument> documents = std::exchange(here_documents_, {});
      const std::int64_t line = line_++;
      for (const HereDocument& each : documents) read_here_document(each);
      target_.clear();
      add(ShellTokenKind::end, "", line);
    } else if (in_test_ &&
               (letter == '<' || letter == '>' || letter == '(' || letter == ')' || letter == '&' || letter == '|')) {
      test_operator();
    } else if (!operator_token(letter)) {
      word();
    }
  }

  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
  void add(ShellTokenKind kind, std::string text = {}) { add(kind, std::move(text), line_); }
  void add(ShellTokenKind kind, std::string text, std::int64_t line) {
    budget_.spend(token_letters + text.size(), line);
    tokens_.push_back({kind, std::move(text), line});
  }

  // Within [[ ]], where && and || join tests and < and > compare.
  void test_operator() {
    const char letter = text_[at_];
    const bool is_double = next() == letter;
    at_ += is_double ? 2 : 1;
    if (is_double && letter == '&')
      add(ShellTokenKind::both);
    else if (is_double && letter == '|')
      add(ShellTokenKind::either);
    else
      add(ShellTokenKind::word, std::string(1, letter));
  }

  bool operator_token(char letter) {
    const bool is_double = next() == letter;
    switch (letter) {
      case ';':
        at_ += is_double ? 2 : 1;
        add(is_double ? ShellTokenKind::clause_end : ShellTokenKind::end);
        return true;
      case '&':
        if (next() == '>') return redirection(), true;
        at_ += is_double ? 2 : 1;
        add(is_double ? ShellTokenKind::both : ShellTokenKind::end);
        return true;
      case '|':
        at_ += is_double ? 2 : 1;
        add(is_double ? ShellTokenKind::either : ShellTokenKind::pipe);
        return true;
      case '(':
      case ')':
        ++at_;
        add(letter == '(' ? ShellTokenKind::open : ShellTokenKind::close);
        return true;
      case '<':
      case '>':
        return redirection(), true;
      default:
        return false;
    }
  }

  void redirection() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '&')) ++at_;
    const std::string_view mark = text_.substr(begin, at_ - begin);
    if (at_ < text_.size() && text_[at_] == '-') ++at_;  // <<-
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    const std::string target = raw_word();
    if (mark == ">" || mark == ">>") target_ = target;
    if (mark != "<<") return;
    std::string plain;
    for (const char letter : target)
      if (letter != '\'' && letter != '"' && letter != '\\') plain += letter;
    here_documents_.push_back({plain, plain != target});
  }

  void read_here_document(const HereDocument& document) {
    const std::string& mark = document.mark;
    const std::size_t begin = at_;
    const std::int64_t first = line_;
    while (at_ < text_.size()) {
      const std::size_t line_begin = at_;
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      while (!line.empty() && (line.front() == '\t' || line.front() == ' ')) line.remove_prefix(1);
      if (line != mark) continue;
      add(ShellTokenKind::here, std::string(text_.substr(begin, line_begin - begin)), first);
      tokens_.back().target = target_;
      tokens_.back().is_quoted = document.is_quoted;
      return;
    }
    fail("<<" + mark + " has no end");
  }

  // Letters up to what ends a word, quotes and brackets as they stand.
  std::string raw_word() {
    std::string raw;
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      if (letter == '\\' && next() == '\n') {
        at_ += 2;
        ++line_;
        continue;
      }
      if (letter == '\\') {
        raw += text_.substr(at_, 2);
        at_ = std::min(at_ + 2, text_.size());
        continue;
      }
      const bool is_group = letter == '$' && (next() == '(' || next() == '{');
      if (is_group || letter == '"' || letter == '\'' || letter == '`') {
        const std::size_t begin = at_;
        at_ = closing(is_group ? at_ + 1 : at_);
        raw += text_.substr(begin, at_ - begin);
        line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                            text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
        continue;
      }
      if (std::isspace(static_cast<unsigned char>(letter)) != 0 ||
          std::string_view(";|&()<>").find(letter) != std::string_view::npos)
        break;
      raw += letter;
      ++at_;
    }
    return raw;
  }

  void word() {
    const std::int64_t line = line_;
    std::string raw = raw_word();
    const bool is_number =
        !raw.empty() && std::all_of(raw.begin(), raw.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (is_number && at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>')) return;  // a stream's number
    if (at_ < text_.size() && text_[at_] == '(' && assignment_length(raw) == raw.size() && !raw.empty()) {
      ++at_;
      add(ShellTokenKind::array, std::move(raw), line);
      return;
    }
    if (raw == "[[") in_test_ = true;
    if (raw == "]]") in_test_ = false;
    add(ShellTokenKind::word, std::move(raw), line);
  }

  std::size_t closing(std::size_t open) const {
    const std::size_t end = shell_closing(text_, open, line_, budget_);
    if (end == std::string_view::npos) fail(std::string("the ") + text_[open] + " that begins here has no end");
    return end;
  }

  [[noreturn]] void fail(const std::string& cause) const {
    throw InputError(budget_.file(), "line " + std::to_string(line_), cause, "close it; a shell would refuse it too");
  }

  std::string_view text_;
  TextBudget& budget_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  bool in_test_ = false;
  std::vector<HereDocument> here_documents_;  // whose lines begin behind this one
  std::string target_;                        // what the line writes
  std::vector<ShellToken> tokens_;
};

std::size_t closing_quote(std::string_view text, std::size_t at, std::int64_t line, TextBudget& budget) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (text[at] == quote) return at + 1;
    if (quote == '\'') continue;
    if (text[at] == '\\') {
      ++at;
    } else if (quote == '"' && text[at] == '$' && at + 1 < text.size() &&
               (text[at + 1] == '(' || text[at + 1] == '{')) {
      at = shell_closing(text, at + 1, line, budget);
      if (at == std::string_view::npos) return at;
      --at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::size_t shell_closing(std::string_view text, std::size_t at, std::int64_t line, TextBudget& budget) {
  const TextBudget::Level level(budget, line);
  const char open = text[at];
  if (open != '(' && open != '{') return closing_quote(text, at, line, budget);
  const char close = open == '(' ? ')' : '}';
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '\\') {
      ++at;
    } else if (letter == '"' || letter == '\'' || letter == '`') {
      at = closing_quote(text, at, line, budget);
      if (at == std::string_view::npos) return at;
      --at;
    } else if (letter == open) {
      budget.check_depth(depth++, line);
    } else if (letter == close && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

bool is_shell_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), is_name_letter);
}

std::size_t assignment_length(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return 0;
  const bool appends = equals > 0 && word[equals - 1] == '+';
  return is_shell_name(word.substr(0, equals - (appends ? 1 : 0))) ? equals + 1 : 0;
}

std::vector<ShellToken> shell_tokens(std::string_view text, TextBudget& budget) {
  return Tokenizer(text, budget).take();
}

}  // namespace spillway::launch
