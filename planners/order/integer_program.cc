#include "planners/order/integer_program.h"

namespace spillway::planners {

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
