#include "planners/order/integer_program.h"

#include "base/input_error.h"

namespace spillway::planners {
namespace {

IntegerProgram::Solver& solver() {
  static IntegerProgram::Solver used = nullptr;
  return used;
}

}  // namespace

bool IntegerProgram::can_solve() { return solver() != nullptr; }

void IntegerProgram::use(Solver given) { solver() = given; }

IntegerProgramResult IntegerProgram::solve(int node_limit, double gap) const {
  if (!can_solve())
    throw InputError("", "", "this program has no CBC to solve integer programs with",
                     "take the command line, built where coinor-libcbc-dev is, or a method without integer programs");
  return solver()(*this, node_limit, gap);
}

IntegerProgram::Column IntegerProgram::add_column(double lower, double upper, double cost, bool integer) {
  lower_.push_back(lower);
  upper_.push_back(upper);
  cost_.push_back(cost);
  integer_.push_back(integer);
  entries_.emplace_back();
  return static_cast<Column>(cost_.size() - 1);
}

void IntegerProgram::add_row(double lower, double upper, const Terms& terms) {
  const auto row = static_cast<std::int32_t>(row_lower_.size());
  for (const auto& [column, value] : terms) entries_[static_cast<std::size_t>(column)].push_back({row, value});
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
}

}  // namespace spillway::planners
