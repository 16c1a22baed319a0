#include "launch/shell_script.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/input_error.h"
#include "launch/shell_tokens.h"
#include "launch/shell_words.h"

namespace spillway::launch {
namespace {

using Truth = std::optional<bool>;  // nullopt: only a run would tell
enum class Branch : std::uint8_t { runs, is_left_out, may_run };
Branch branch_of(Truth condition) {
  if (!condition) return Branch::may_run;
  return *condition ? Branch::runs : Branch::is_left_out;
}

constexpr int most_sources = 16;  // files that a script reads as parts of it

bool starts_flag(std::string_view word) { return word.size() > 2 && word.starts_with("--"); }

// By a pattern of the shell's. Its stars may try each of them at each letter.
bool is_match(const std::string& text, const std::string& pattern, std::int64_t line, TextBudget& budget) {
  budget.spend((text.size() + 1) * (pattern.size() + 1) / 4, line);
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Conditions of [ ] and [[ ]], without their brackets.
class Condition {
 public:
  Condition(std::vector<ShellWord> words, TextBudget& budget) : words_(std::move(words)), budget_(budget) {}

  Truth truth() const {
    if (words_.empty()) return std::nullopt;
    std::size_t at = 0;
    bool negated = false;
    while (at < words_.size() && words_[at].text == "!" && words_[at].unknown.empty()) {
      negated = !negated;
      ++at;
    }
    const Truth plain = test(at);
    return plain ? Truth(*plain != negated) : plain;
  }

 private:
  Truth test(std::size_t at) const {
    const std::size_t count = words_.size() - at;
    if (count == 1) return words_[at].unknown.empty() ? Truth(!words_[at].text.empty()) : std::nullopt;
    if (count == 2) {
      const ShellWord& operand = words_[at + 1];
      if (!operand.unknown.empty()) return std::nullopt;
      if (words_[at].text == "-z") return operand.text.empty();
      if (words_[at].text == "-n") return !operand.text.empty();
      return std::nullopt;  // of files
    }
    if (count != 3 || !words_[at].unknown.empty() || !words_[at + 2].unknown.empty()) return std::nullopt;
    return comparison(words_[at], words_[at + 1].text, words_[at + 2].text);
  }

  [[nodiscard]] Truth comparison(const ShellWord& left, const std::string& operation, const std::string& right) const {
    const bool wants_equal = operation == "==" || operation == "=";
    if (wants_equal || operation == "!=")
      return (is_match(left.text, right, left.line, budget_) || left.text == right) == wants_equal;
    const ShellVariables none;
    const auto a = shell_arithmetic(left.text, left.line, {none, budget_});
    const auto b = shell_arithmetic(right, left.line, {none, budget_});
    if (!a || !b) return std::nullopt;
    if (operation == "-eq") return *a == *b;
    if (operation == "-ne") return *a != *b;
    if (operation == "-lt") return *a < *b;
    if (operation == "-le") return *a <= *b;
    if (operation == "-gt") return *a > *b;
    if (operation == "-ge") return *a >= *b;
    return std::nullopt;
  }

  std::vector<ShellWord> words_;
  TextBudget& budget_;
};

class ScriptReader {
 public:
  ScriptReader(std::string_view text, const ShellValues& given, TextBudget& budget, const ShellSource& source)
      : budget_(budget), tokens_(shell_tokens(text, budget)), given_(given), source_(source) {
    read_job_options(text);
    for (const auto& [name, value] : given) variables_[name] = {{value, 0}};
  }

  ShellScript take() {
    block({}, Branch::runs);
    return std::move(script_);
  }

 private:
  using Stops = std::vector<std::string_view>;

  // #SBATCH lines, and what Slurm makes of them.
  void read_job_options(std::string_view text) {
    std::int64_t line = 0;
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view whole = text.substr(at, end - at);
      at = end + 1;
      constexpr std::string_view mark = "#SBATCH ";
      if (!whole.starts_with(mark)) continue;
      std::string_view rest = whole.substr(mark.size());
      rest = rest.substr(0, rest.find('#'));
      const ShellVariables options = {{"x", {{std::string(rest), line + 1}}}};
      for (ShellWord& word : expand("$x", line + 1, {options, budget_})) script_.job_options.push_back(std::move(word));
    }
    const auto& words = script_.job_options;
    const auto value_of = [&](std::string_view name, std::string_view letter) -> std::string {
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i].text.starts_with(std::string(name) + "=")) return words[i].text.substr(name.size() + 1);
        if ((words[i].text == name || words[i].text == letter) && i + 1 < words.size()) return words[i + 1].text;
      }
      return "";
    };
    const auto assign = [&](std::string_view variable, const std::string& value) {
      if (!value.empty()) variables_[std::string(variable)] = {{value, 0}};
    };
    for (const std::string_view variable : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
      assign(variable, value_of("--nodes", "-N"));
    assign("SLURM_NTASKS_PER_NODE", value_of("--ntasks-per-node", ""));
    assign("SLURM_GPUS_PER_NODE", value_of("--gpus-per-node", ""));
    assign("SLURM_GPUS_ON_NODE", value_of("--gpus-per-node", ""));
  }

  [[nodiscard]] const ShellToken& token() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  [[nodiscard]] bool is_done() const { return at_ >= tokens_.size(); }
  [[nodiscard]] bool is_word(std::string_view text) const {
    return !is_done() && token().kind == ShellTokenKind::word && token().text == text;
  }

  // Up to a keyword of `stops`, or ;;, which stay.
  void block(const Stops& stops, Branch branch) {
    const std::int64_t begin = token().line;
    const TextBudget::Level level(budget_, begin);
    while (!is_done()) {
      if (token().kind == ShellTokenKind::clause_end && !stops.empty()) return;
      if (token().kind == ShellTokenKind::word)
        for (const std::string_view stop : stops)
          if (token().text == stop) return;
      branch = statement(branch);
    }
    if (!stops.empty()) fail(begin, fmt::format("no {} ends what begins here", stops.back()));
  }

  // One statement; the branch that the next one is in, which && and || may have changed until the line ends.
  Branch statement(Branch branch) {
    using Kind = ShellTokenKind;
    const ShellToken& first = token();
    if (first.kind != Kind::word && first.kind != Kind::array) {
      ++at_;
      return branch;
    }
    if (first.text == "if") {
      conditional(branch);
    } else if (first.text == "case") {
      choice(branch);
    } else if (first.text == "for" || first.text == "while" || first.text == "until" || first.text == "select") {
      pass_block(branch, {"for", "while", "until", "select"}, "done", "a loop");
    } else if (begins_function()) {
      pass_block(branch, {"{"}, "}", "a function");
    } else if (first.text == "{" || first.text == "}" || first.text == "!" || first.text == "then" ||
               first.text == "do") {
      ++at_;
    } else {
      and_or_list(branch);
    }
    return branch;
  }

  // Commands joined by && and ||.
  void and_or_list(Branch branch) {
    while (true) {
      const Truth truth = command(branch);
      if (is_done() || (token().kind != ShellTokenKind::both && token().kind != ShellTokenKind::either)) return;
      const bool wants = token().kind == ShellTokenKind::both;
      ++at_;
      while (!is_done() && token().kind == ShellTokenKind::end) ++at_;  // a list may go on in the next line
      if (branch == Branch::runs) branch = branch_of(truth ? Truth(*truth == wants) : truth);
    }
  }

  // A simple command or assignments: whether it succeeds, a command that is no test always.
  Truth command(Branch branch) {
    using Kind = ShellTokenKind;
    ShellCommand made{.words = {}, .line = token().line};
    std::vector<ShellExport> prefixes;
    bool exports = false;
    while (!is_done() && (token().kind == Kind::word || token().kind == Kind::array)) {
      const ShellToken& next = token();
      const std::size_t length = assignment_length(next.text);
      if (branch == Branch::runs && made.words.size() == 1 && made.words.front().text == ":") assign_default(next);
      const bool declares = made.words.size() == 1 && is_declaration(made.words.front().text);
      if (length > 0 && (made.words.empty() || declares)) {
        exports = declares && made.words.front().text == "export";
        assign(branch, made.words.empty() || exports, prefixes);
        continue;
      }
      for (ShellWord& word : expand(next.text, next.line, scope())) made.words.push_back(std::move(word));
      ++at_;
      if (declares && made.words.size() > 1 && made.words.back().text.starts_with('-')) made.words.pop_back();
    }
    for (; !is_done() && token().kind == Kind::here; ++at_)
      if (branch == Branch::runs) read_here(made);
    if (!is_done() && token().kind == Kind::open) {  // a sub-shell or an odd bracket
      ++at_;
      return true;
    }
    const bool is_command = !made.words.empty() && !is_declaration(made.words.front().text);
    if (branch == Branch::runs && (is_command || exports))
      for (ShellExport& each : prefixes) script_.exports.push_back(std::move(each));
    if (made.words.empty()) return true;
    const std::string name = made.words.front().text;
    if (name == "[" || name == "[[" || name == "test") return test_truth(std::move(made.words));
    if (name == "true" || name == "false") return name == "true";
    if ((name == "source" || name == ".") && branch == Branch::runs && made.words.size() > 1)
      read_source(made.words[1]);
    const bool starts_none = name == ":" || name == "read";
    if (is_command && !starts_none) keep(std::move(made), branch);
    return true;
  }

  // `source FILE`: its tokens stand in the place of the command, in its line.
  void read_source(const ShellWord& file) {
    const auto text = source_ && file.unknown.empty() ? source_(file.text) : std::nullopt;
    if (!text) return note(fmt::format("line {}: {}, which it reads, is not there", file.line, file.text));
    if (++sources_ > most_sources) fail(file.line, "too many files are read one by another");
    std::vector<ShellToken> tokens = shell_tokens(*text, budget_);
    for (ShellToken& token : tokens) token.line = file.line;
    tokens.insert(tokens.begin(), {.kind = ShellTokenKind::end, .text = "", .line = file.line});
    tokens_.insert(tokens_.begin() + static_cast<std::ptrdiff_t>(at_), tokens.begin(), tokens.end());
  }

  // `: "${NAME:=value}"`.
  void assign_default(const ShellToken& word) {
    std::string_view raw = word.text;
    if (raw.size() > 1 && raw.front() == '"') raw = raw.substr(1, raw.size() - 2);
    const std::size_t equals = raw.find('=');
    if (!raw.starts_with("${") || !raw.ends_with('}') || equals == std::string_view::npos) return;
    const bool also_empty = raw[equals - 1] == ':';
    const std::string name(raw.substr(2, equals - 2 - (also_empty ? 1 : 0)));
    if (!is_shell_name(name)) return;
    const auto found = variables_.find(name);
    if (found != variables_.end() && (!also_empty || found->second.empty() || !found->second.front().text.empty()))
      return;
    variables_[name] = {expand_whole(raw.substr(equals + 1, raw.size() - equals - 2), word.line, scope())};
  }

  // A here-document: what `read` puts into its variable, or a file that the command writes.
  void read_here(const ShellCommand& command) {
    if (command.words.empty()) return;
    const ShellToken& document = token();
    const ShellWord lines = document.is_quoted ? ShellWord{document.text, document.line} : here_lines(document);
    const std::string& name = command.words.front().text;
    const std::string& last = command.words.back().text;
    if (name == "read" && is_shell_name(last) && !given_.contains(last))
      variables_[last] = {lines};
    else if (!document.target.empty() && lines.unknown.empty())
      script_.files[expand_whole(document.target, document.line, scope()).text] = lines.text;
    else if (name == "tee" && lines.unknown.empty())
      script_.files[last] = lines.text;
  }

  // Variables in it stand for values, quotes for themselves.
  [[nodiscard]] ShellWord here_lines(const ShellToken& document) const {
    budget_.spend(2 * document.text.size() + 2, document.line);
    std::string raw = "\"";
    for (std::size_t i = 0; i < document.text.size(); ++i) {
      const char letter = document.text[i];
      if (letter == '\\' && i + 1 < document.text.size() && document.text[i + 1] != '"')
        raw.append(1, letter).append(1, document.text[++i]);
      else
        raw.append(letter == '"' || letter == '\\' ? "\\" : "").append(1, letter);
    }
    return expand_whole(raw + "\"", document.line, scope());
  }

  static bool is_declaration(std::string_view word) {
    constexpr std::array<std::string_view, 5> all = {"export", "declare", "local", "readonly", "typeset"};
    return std::find(all.begin(), all.end(), word) != all.end();
  }

  Truth test_truth(std::vector<ShellWord> words) {
    const bool has_bracket = words.front().text != "test";
    words.erase(words.begin());
    if (has_bracket && !words.empty()) words.pop_back();
    if (words.empty()) return false;
    // Whether the caller's environment has a variable: reckoned with is that it hasn't.
    const bool asks =
        words.size() > 1 && (words[words.size() - 2].text == "-z" || words[words.size() - 2].text == "-n");
    if (ShellWord& last = words.back(); asks && !last.unknown.empty() && !variables_.contains(last.unknown)) {
      if (last.text == "$" + last.unknown || last.text == "${" + last.unknown + "}") {
        note(fmt::format("line {}: {} is taken as not set", last.line, last.text));
        last = {"", last.line};
      }
    }
    for (ShellWord& word : words) {
      const bool is_parameter = word.unknown.size() == 1 && word.unknown >= "1" && word.unknown <= "9";
      if (!is_parameter || words.size() != 3) continue;
      note(fmt::format("line {}: {} is taken as not given", word.line, word.text));
      word = {"", word.line};
    }
    return Condition(std::move(words), budget_).truth();
  }

  void keep(ShellCommand command, Branch branch) {
    if (branch == Branch::runs) {
      // A line of flags alone goes on with the one before: a list of arguments.
      if (starts_flag(command.words.front().text) && !script_.commands.empty()) {
        std::vector<ShellWord>& words = script_.commands.back().words;
        words.insert(words.end(), command.words.begin(), command.words.end());
        return;
      }
      script_.commands.push_back(std::move(command));
    } else if (branch == Branch::may_run) {
      const bool has_flags = std::any_of(command.words.begin(), command.words.end(),
                                         [](const ShellWord& w) { return starts_flag(w.text); });
      if (has_flags)
        note(fmt::format("line {}: whether this command runs depends on what only a run tells; passed over",
                         command.line));
    }
  }

  // NAME=value, NAME+=value or an array, at which it stands.
  void assign(Branch branch, bool may_export, std::vector<ShellExport>& exports) {
    const ShellToken head = token();
    const std::size_t length = assignment_length(head.text);
    const bool appends = length > 1 && head.text[length - 2] == '+';
    const std::string name = head.text.substr(0, length - (appends ? 2 : 1));
    ShellVariable value;
    ++at_;
    if (head.kind == ShellTokenKind::array) {
      while (token().kind != ShellTokenKind::close) {
        if (is_done()) fail(head.line, "the ( that begins here has no end");
        if (token().kind == ShellTokenKind::word)
          for (ShellWord& word : expand(token().text, token().line, scope())) value.push_back(std::move(word));
        ++at_;
      }
      ++at_;
    } else {
      value = {expand_whole(std::string_view(head.text).substr(length), head.line, scope())};
      // Of what stands for a value alone, giving this variable is enough; of a list of flags its own variable is.
      ShellWord& only = value.front();
      const bool is_list = only.text.find(' ') != std::string::npos && only.unknown.find('(') == std::string::npos &&
                           !only.unknown.starts_with('`');
      if (!only.unknown.empty() && !is_list) only.unknown = name;
    }
    if (given_.contains(name) || branch == Branch::is_left_out) return;
    if (branch == Branch::may_run && appends && head.kind == ShellTokenKind::array) {
      note(fmt::format("line {}: whether {} gets more depends on what only a run tells; passed over", head.line, name));
      return;
    }
    if (branch == Branch::may_run) return forget(name, head.line);
    ShellVariable& variable = variables_[name];
    if (appends && head.kind == ShellTokenKind::array) {
      variable.insert(variable.end(), value.begin(), value.end());
    } else if (!appends || variable.empty()) {
      variable = std::move(value);
    } else {
      variable.front().text += value.front().text;
      if (variable.front().unknown.empty()) variable.front().unknown = value.front().unknown;
    }
    if (!may_export || variable.empty()) return;
    budget_.spend(name.size() + variable.front().text.size() + variable.front().unknown.size(), head.line);
    exports.push_back({name, variable.front()});
  }

  void forget(const std::string& name, std::int64_t line) {
    if (!given_.contains(name)) variables_[name] = {{"$" + name, line, name}};
  }

  // if ... then ... elif ... else ... fi
  void conditional(Branch branch) {
    const std::int64_t begin = token().line;
    Truth decided = false;  // whether one of the branches before runs
    bool is_open = true;    // whether this one may
    while (true) {
      ++at_;
      const Truth truth = condition(branch, begin);
      const Branch inner = !is_open ? Branch::is_left_out : both_of(branch, branch_of(truth), decided);
      block({"elif", "else", "fi"}, inner);
      if (truth && *truth && decided && !*decided) is_open = false;
      if (!truth) decided = std::nullopt;
      if (!is_word("elif")) break;
    }
    if (is_word("else")) {
      ++at_;
      block({"fi"}, !is_open ? Branch::is_left_out : both_of(branch, Branch::runs, decided));
    }
    if (!is_word("fi")) fail(begin, "no fi ends what begins here");
    ++at_;
  }

  static Branch both_of(Branch outer, Branch inner, Truth decided) {
    if (outer == Branch::is_left_out || inner == Branch::is_left_out) return Branch::is_left_out;
    if (outer == Branch::may_run || inner == Branch::may_run || !decided) return Branch::may_run;
    return Branch::runs;
  }

  // Up to its `then`, which it passes.
  Truth condition(Branch branch, std::int64_t begin) {
    Truth all = true;
    bool wants = true, is_first = true;
    while (!is_word("then")) {
      if (is_done()) fail(begin, "no then follows this if");
      if (token().kind == ShellTokenKind::word) {
        bool negated = false;
        for (; is_word("!"); ++at_) negated = !negated;
        Truth one = is_word("true") || is_word("false") || is_test() ? command(Branch::runs) : other_condition();
        if (one && negated) one = !*one;
        all = is_first ? one : joined(all, one, wants);
        is_first = false;
        continue;
      }
      if (token().kind == ShellTokenKind::both) wants = true;
      if (token().kind == ShellTokenKind::either) wants = false;
      ++at_;
    }
    ++at_;
    static_cast<void>(branch);
    return all;
  }

  [[nodiscard]] bool is_test() const { return is_word("[") || is_word("[[") || is_word("test"); }

  // A command as a condition: known only where a variable says true or false.
  Truth other_condition() {
    const std::vector<ShellWord> words = expand(token().text, token().line, scope());
    while (!is_done() &&
           (token().kind == ShellTokenKind::word || token().kind == ShellTokenKind::open ||
            token().kind == ShellTokenKind::close) &&
           !is_word("then"))
      ++at_;
    if (words.size() != 1 || !words.front().unknown.empty()) return std::nullopt;
    if (words.front().text == "true") return true;
    return words.front().text == "false" ? Truth(false) : std::nullopt;
  }

  static Truth joined(Truth left, Truth right, bool is_and) {
    if ((left && *left != is_and) || (right && *right != is_and)) return !is_and;
    return left && right ? Truth(is_and) : std::nullopt;
  }

  // case WORD in PATTERN) ... ;; esac
  void choice(Branch branch) {
    using Kind = ShellTokenKind;
    const std::int64_t begin = token().line;
    ++at_;
    const ShellWord word = expand_whole(token().text, token().line, scope());
    ++at_;
    Truth decided = false;
    while (!is_done() && !is_word("esac")) {
      if (token().kind == Kind::end || token().kind == Kind::clause_end || token().kind == Kind::open ||
          is_word("in")) {
        ++at_;
        continue;
      }
      Truth matches = false;
      for (; !is_done() && token().kind != Kind::close; ++at_) {
        if (token().kind != Kind::word) continue;
        const ShellWord pattern = expand_whole(token().text, token().line, scope());
        const bool is_known = word.unknown.empty() && pattern.unknown.empty();
        matches = joined(
            matches, is_known ? Truth(is_match(word.text, pattern.text, pattern.line, budget_)) : std::nullopt, false);
      }
      ++at_;
      const bool is_over = decided && *decided;
      block({"esac"}, is_over ? Branch::is_left_out : both_of(branch, branch_of(matches), decided));
      decided = joined(decided, matches, false);
    }
    if (is_done()) fail(begin, "no esac ends what begins here");
    ++at_;
  }

  [[nodiscard]] bool begins_function() const {
    const auto kind_at = [&](std::size_t at) { return at < tokens_.size() ? tokens_[at].kind : ShellTokenKind::end; };
    if (is_word("function")) return true;
    return token().kind == ShellTokenKind::word && is_shell_name(token().text) &&
           kind_at(at_ + 1) == ShellTokenKind::open && kind_at(at_ + 2) == ShellTokenKind::close;
  }

  // Up to its end, forgetting what it assigns.
  void pass_block(Branch branch, const Stops& opens, std::string_view close, std::string_view noun) {
    const std::int64_t begin = token().line;
    int depth = 0;
    bool has_flags = false, at_command = true;
    std::set<std::string> assigned;
    if (opens.size() > 1 && at_ + 1 < tokens_.size() && is_word("for")) assigned.insert(tokens_[at_ + 1].text);
    for (; !is_done(); ++at_) {
      const ShellToken& next = token();
      if (next.kind != ShellTokenKind::word && next.kind != ShellTokenKind::array) {
        at_command = next.kind != ShellTokenKind::here;
        continue;
      }
      if (at_command && std::find(opens.begin(), opens.end(), next.text) != opens.end()) ++depth;
      if (const std::size_t length = assignment_length(next.text))
        assigned.insert(next.text.substr(0, length - (length > 1 && next.text[length - 2] == '+' ? 2 : 1)));
      has_flags = has_flags || starts_flag(next.text);
      if (at_command && next.text == close && --depth == 0) break;
      at_command = at_command && (next.text == "do" || next.text == "then" || next.text == "else" || next.text == "{");
    }
    if (is_done()) fail(begin, fmt::format("no {} ends what begins here", close));
    ++at_;
    if (branch == Branch::is_left_out) return;
    for (const std::string& name : assigned)
      if (is_shell_name(name)) forget(name, begin);
    if (has_flags || !assigned.empty())
      note(fmt::format("line {}: {} is passed over; what it assigns counts as unknown", begin, noun));
  }

  [[noreturn]] void fail(std::int64_t line, const std::string& cause) const {
    throw InputError(budget_.file(), fmt::format("line {}", line), cause, "close it; a shell would refuse it too");
  }

  // `what` begins with its line.
  void note(std::string what) {
    budget_.spend(what.size(), token().line);
    script_.notes.push_back(std::move(what));
  }

  [[nodiscard]] ShellScope scope() const { return {variables_, budget_}; }

  TextBudget& budget_;
  std::vector<ShellToken> tokens_;
  const ShellValues& given_;
  const ShellSource& source_;
  int sources_ = 0;
  std::size_t at_ = 0;
  ShellVariables variables_;
  ShellScript script_;
};

}  // namespace

ShellScript read_shell(std::string_view text, const ShellValues& given, TextBudget& budget, const ShellSource& source) {
  return ScriptReader(text, given, budget, source).take();
}

}  // namespace spillway::launch
