// The integer program against brute force and against the exhaustive search, where the build has CBC.
#include "planners/order/order_ilp.h"

#include <gtest/gtest.h>

#include "base/input_error.h"
#include "planners/order/cbc/cbc_solver.h"
#include "planners/order/integer_program.h"
#include "planners/order/order_check.h"
#include "planners/order/order_solver.h"
#include "tests/planners/order/order_cases.h"
#include "tests/test_size.h"

namespace spillway::planners {
namespace {

[[maybe_unused]] const bool has_solver = (use_cbc(), true);

// max x + y with x + 2y <= 4, 3x + y <= 6: 14/5 over the reals (x = 8/5, y = 6/5), 2 over whole numbers.
TEST(IntegerProgram, WholeNumbersCost) {
  if (!IntegerProgram::can_solve()) GTEST_SKIP() << "built without CBC";
  for (const bool whole : {false, true}) {
    IntegerProgram program;
    const auto x = program.add_column(0, 10, -1, whole), y = program.add_column(0, 10, -1, whole);
    program.add_row(-IntegerProgram::infinity, 4, {{x, 1}, {y, 2}});
    program.add_row(-IntegerProgram::infinity, 6, {{x, 3}, {y, 1}});
    const IntegerProgramResult result = program.solve(1000);
    ASSERT_EQ(result.values.size(), 2U);
    EXPECT_NEAR(result.objective, whole ? -2 : -2.8, 1e-6);
  }
}

TEST(IntegerProgram, NothingIsFoundWhereNothingIs) {
  if (!IntegerProgram::can_solve()) GTEST_SKIP() << "built without CBC";
  IntegerProgram program;
  const auto x = program.add_column(0, 1, 1, true);
  program.add_row(2, IntegerProgram::infinity, {{x, 1}});
  const IntegerProgramResult result = program.solve(1000);
  EXPECT_TRUE(result.values.empty());
  EXPECT_FALSE(result.proven);
}

TEST(OrderIlp, EqualsBruteForceAndTheSolver) {
  if (!IntegerProgram::can_solve()) GTEST_SKIP() << "built without CBC";
  std::mt19937 random(4);
  const int wanted = spillway::test::cases(20, 100);
  int better_than_program = 0;
  for (int cases = 0; cases < wanted;) {
    const OrderGraph graph = random_graph(random, 12);
    const std::int64_t optimum = brute_force(graph, 1500);
    if (optimum < 0) continue;
    ++cases;
    const OrderIlpResult result = solve_order_ilp(graph);
    ASSERT_TRUE(result.proven) << "case " << cases;
    ASSERT_EQ(result.peak_bytes, optimum) << "case " << cases;
    ASSERT_EQ(solve_order(graph).peak_bytes, optimum);
    ASSERT_EQ(check_order(graph, result.order).peak_bytes, optimum);
    better_than_program += optimum < peak_of_order(graph, graph.program_order) ? 1 : 0;
  }
  EXPECT_GE(better_than_program, spillway::test::cases(1, 11));
}

TEST(OrderIlp, XlaCounterExample) {
  if (!IntegerProgram::can_solve()) GTEST_SKIP() << "built without CBC";
  const OrderGraph graph =
      graph_of(7, {{0, 1, {1, 3, 4}}, {1, 2, {2}}, {2, 1, {6}}, {3, 1, {5}}, {4, 1, {5}}, {5, 2, {6}}});
  EXPECT_EQ(solve_order_ilp(graph).peak_bytes, 5);
}

TEST(OrderIlp, RefusesLargeGraphs) {
  EXPECT_THROW(solve_order_ilp(graph_of(41, {})), InputError);
  if (!IntegerProgram::can_solve()) {
    EXPECT_THROW(solve_order_ilp(graph_of(1, {})), InputError);
  }
}

}  // namespace
}  // namespace spillway::planners
