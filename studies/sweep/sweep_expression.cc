#include "studies/sweep/sweep_expression.h"

#include <muParser.h>

#include <algorithm>
#include <cmath>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

double mod(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }
double divides(double a, double b) { return a != 0 && mod(b, a) == 0 ? 1 : 0; }
double round_down(double x) { return std::floor(x); }
double round_up(double x) { return std::ceil(x); }

}  // namespace

struct SweepExpression::Parser {
  mu::Parser parser;
  std::vector<double> values;
  std::vector<std::size_t> used;
};

SweepExpression::SweepExpression(const std::string& text, std::span<const std::string> names, const std::string& file,
                                 const std::string& place)
    : parser_(std::make_unique<Parser>()) {
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
