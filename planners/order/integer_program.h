// A linear program with integer variables, solved by CBC (COIN-OR branch and cut).
//
// CBC is optional (meson -Dcbc=): without it programs can be built but not solved.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace spillway::planners {

struct IntegerProgramResult {
  bool proven = false;         // an optimum was found and proven
  double objective = 0;        // of the values; meaningless without values
  std::vector<double> values;  // by column; empty if no solution was found, because there is none or the nodes ran out
};

class IntegerProgram {
 public:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  using Column = std::int32_t;
  using Terms = std::vector<std::pair<Column, double>>;  // columns of a row, each at most once

  // A variable in [lower, upper]; `cost` is its part of what is minimised.
  Column add_column(double lower, double upper, double cost, bool integer);
  // lower <= sum of terms <= upper.
  void add_row(double lower, double upper, const Terms& terms);

  // Minimises. `node_limit` bounds the search tree, so that the answer does not depend on the machine's speed. A
  // solution within `gap` of the best bound counts as proven: just below 1 where all objectives are whole. Throws
  // InputError in a build without CBC.
  [[nodiscard]] IntegerProgramResult solve(int node_limit, double gap = 0) const;
  // Whether this build has CBC.
  static bool can_solve();

  [[nodiscard]] std::size_t columns() const { return cost_.size(); }
  [[nodiscard]] std::size_t rows() const { return row_lower_.size(); }

 private:
  struct Entry {
    std::int32_t row = 0;
    double value = 0;
  };
  std::vector<double> lower_, upper_, cost_, row_lower_, row_upper_;
  std::vector<bool> integer_;
  std::vector<std::vector<Entry>> entries_;  // by column
};

}  // namespace spillway::planners
