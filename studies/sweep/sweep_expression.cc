#include "studies/sweep/sweep_expression.h"

#include <muParser.h>

#include <algorithm>
#include <cctype>
#include <cmath>
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

}  // namespace

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
    throw InputError(file, place, "'" + text + "': " + error.GetMsg(), "see docs/sweep.md for what may be written");
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
