// A linear program with integer variables, solved by whatever solver the program brings along: the command line has CBC
// (cbc/cbc_solver.h), which the window, under another licence, must not link. Without one, programs can be built but
// not solved.
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
  // InputError without a solver.
  [[nodiscard]] IntegerProgramResult solve(int node_limit, double gap = 0) const;
  static bool can_solve();  // there is a solver

  // As solve(). To be set before any thread solves.
  using Solver = IntegerProgramResult (*)(const IntegerProgram& program, int node_limit, double gap);
  static void use(Solver solver);

  [[nodiscard]] std::size_t columns() const { return cost_.size(); }
  [[nodiscard]] std::size_t rows() const { return row_lower_.size(); }

  // For solvers.
  struct Entry {
    std::int32_t row = 0;
    double value = 0;
  };
  [[nodiscard]] const std::vector<double>& lower() const { return lower_; }
  [[nodiscard]] const std::vector<double>& upper() const { return upper_; }
  [[nodiscard]] const std::vector<double>& cost() const { return cost_; }
  [[nodiscard]] const std::vector<double>& row_lower() const { return row_lower_; }
  [[nodiscard]] const std::vector<double>& row_upper() const { return row_upper_; }
  [[nodiscard]] bool is_integer(std::size_t column) const { return integer_[column]; }
  [[nodiscard]] const std::vector<std::vector<Entry>>& entries() const { return entries_; }  // by column

 private:
  std::vector<double> lower_, upper_, cost_, row_lower_, row_upper_;
  std::vector<bool> integer_;
  std::vector<std::vector<Entry>> entries_;  // by column
};

}  // namespace spillway::planners
