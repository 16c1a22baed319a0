#include "studies/sweep/sweep_expression.h"

#include <muParser.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

double mod(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }
double divides(double a, double b) { return a != 0 && mod(b, a) == 0 ? 1 : 0; }
double round_down(double x) { return std::floor(x); }
double round_up(double x) { return std::ceil(x); }

// muParser's = gives a variable another value, and its comma keeps the last of several: neither belongs into a
// condition or a figure. 0: both are absent; else the sign that is not.
char sign_out_of_place(std::string_view text) {
  std::vector<bool> calls;  // of each open bracket
  char last = ' ';          // before this one, blanks apart
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (c == '(') calls.push_back(std::isalnum(static_cast<unsigned char>(last)) != 0 || last == '_');
    if (c == ')' && !calls.empty()) calls.pop_back();
    if (c == ',' && (calls.empty() || !calls.back())) return c;
    if (c == '=' && next != '=' && std::string_view("=<>!").find(i > 0 ? text[i - 1] : ' ') == std::string_view::npos)
      return c;
    if (std::isspace(static_cast<unsigned char>(c)) == 0) last = c;
  }
  return 0;
}

std::string_view without_brackets(std::string_view text) {
  while (text.starts_with('(')) {
    int depth = 0;
    std::size_t end = 0;
    for (; end < text.size(); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')' && --depth == 0) break;
    }
    if (end + 1 != text.size()) break;
    text = text.substr(1, end - 1);
  }
  return text;
}

}  // namespace

bool compares_with_itself(std::string_view expression) {
  std::string text;
  for (const char c : expression)
    if (std::isspace(static_cast<unsigned char>(c)) == 0) text += c;
  struct Sides {
    std::size_t begin;                     // of the side that is being read
    std::optional<std::string_view> left;  // of a comparison
  };
  std::vector<Sides> open = {{0, {}}};  // the expression's, and of each open bracket
  const auto is_same = [&](std::size_t end) {
    const auto& [begin, left] = open.back();
    return left && without_brackets(*left) == without_brackets(std::string_view(text).substr(begin, end - begin));
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view two = std::string_view(text).substr(at, 2);
    const bool is_long = two == "==" || two == "!=" || two == "<=" || two == ">=";
    const bool compares = is_long || text[at] == '<' || text[at] == '>';
    const bool joins = two == "&&" || two == "||";
    const bool ends = joins || std::string_view("?:,)").find(text[at]) != std::string_view::npos;
    if ((compares || ends) && is_same(at)) return true;
    const std::size_t end = at;
    if (is_long || joins) ++at;
    if (compares)
      open.back() = {at + 1, std::string_view(text).substr(open.back().begin, end - open.back().begin)};
    else if (text[at] == ')' && open.size() > 1)
      open.pop_back();
    else if (ends)
      open.back() = {at + 1, {}};
    else if (text[at] == '(')
      open.push_back({at + 1, {}});
  }
  return is_same(text.size());
}

struct SweepExpression::Parser {
  mu::Parser parser;
  std::vector<double> values;
  std::vector<std::size_t> used;
};

SweepExpression::SweepExpression(const std::string& text, std::span<const std::string> names, const std::string& file,
                                 const std::string& place)
    : parser_(std::make_unique<Parser>()) {
  if (const char sign = sign_out_of_place(text); sign != 0)
    throw InputError(file, place, "'" + text + "': '" + sign + "' gives no value here",
                     sign == '=' ? "compare with ==" : "join conditions with &&");
  try {
    mu::Parser& parser = parser_->parser;
    parser_->values.resize(names.size());
    parser.DefineFun("mod", mod);
    parser.DefineFun("divides", divides);
    parser.DefineFun("floor", round_down);
    parser.DefineFun("ceil", round_up);
    for (std::size_t i = 0; i < names.size(); ++i) parser.DefineVar(names[i], &parser_->values[i]);
    parser.SetExpr(text);
    for (const auto& [name, variable] : parser.GetUsedVar()) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw InputError(file, place,
                         "'" + text + "' names '" + name + "', which is no axis, constant or derived value",
                         "declare it before it is used");
      parser_->used.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    static_cast<void>(parser.Eval());
  } catch (const mu::Parser::exception_type& error) {
    throw InputError(file, place, "'" + text + "': " + error.GetMsg(),
                     "see docs/how-to/run-a-sweep.md for what may be written");
  }
}

SweepExpression::~SweepExpression() = default;
SweepExpression::SweepExpression(SweepExpression&&) noexcept = default;
SweepExpression& SweepExpression::operator=(SweepExpression&&) noexcept = default;

const std::vector<std::size_t>& SweepExpression::used() const { return parser_->used; }

double SweepExpression::value(std::span<const double> values) {
  for (const std::size_t i : parser_->used) parser_->values[i] = values[i];
  return parser_->parser.Eval();
}

}  // namespace spillway::studies
