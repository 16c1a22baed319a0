// An arithmetic expression over named numbers, as sweep files write them: "512 / (t * p)", "t * p <= gpus && t <= 8".
//
// Syntax and evaluation are muParser's: + - * / ^, comparisons, && || !, a ? b : c, min, max, abs, sqrt, log2, ...;
// added are floor, ceil, mod(a, b) and divides(a, b), which is 1 where b / a is whole. Its assignments (t = 4) and its
// commas outside a function's arguments are refused.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::studies {

class SweepExpression {
 public:
  // `names`: variables that may occur. Throws InputError (file, place) for a syntax error or an unknown name.
  SweepExpression(const std::string& text, std::span<const std::string> names, const std::string& file,
                  const std::string& place);
  ~SweepExpression();
  SweepExpression(SweepExpression&&) noexcept;
  SweepExpression& operator=(SweepExpression&&) noexcept;

  // Indices into `names` of those that occur.
  [[nodiscard]] const std::vector<std::size_t>& used() const;
  // values: by name. Not to be called by two threads at once. Well under a microsecond.
  double value(std::span<const double> values);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

// Whether a comparison in it has the same text on both sides, blanks and brackets around them apart: "t == t".
bool compares_with_itself(std::string_view expression);

}  // namespace spillway::studies
