#include "planners/order/cbc/cbc_solver.h"

#include "base/loaded_module.h"
#include "planners/order/integer_program.h"

namespace spillway::planners {
namespace {

IntegerProgramResult solve(const IntegerProgram& program, int node_limit, double gap) {
  using Solver = void(const IntegerProgram&, int, double, IntegerProgramResult&);
  static Solver* const solve_by_cbc =
      reinterpret_cast<Solver*>(module_function("libspillway_cbc.so", "planners/order/cbc", "spillway_solve_by_cbc",
                                                "install coinor-libcbc3, or choose another solver"));
  IntegerProgramResult result;
  solve_by_cbc(program, node_limit, gap, result);
  return result;
}

}  // namespace

void use_cbc() { IntegerProgram::use(solve); }

}  // namespace spillway::planners
